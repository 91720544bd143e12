package faults

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestBusyScript(t *testing.T) {
	f := newFake(cluster.Quorum)
	f.replies["CONFIG GET lua-time-limit"] = []any{"lua-time-limit", "5000"}
	in := inject(t, busyScriptSpec, f.env(), "n1+n2")
	did(t, f, "n1: CONFIG GET lua-time-limit", "n1: CONFIG SET lua-time-limit 1", "n1: EVAL while true do end 0",
		"n2: CONFIG GET lua-time-limit", "n2: CONFIG SET lua-time-limit 1", "n2: EVAL while true do end 0")
	if effect := takesEffect(t, in); effect != "it replies BUSY" {
		t.Error(effect)
	}
	f.done()
	heals(t, in)
	did(t, f, "n1: SCRIPT KILL", "n1: CONFIG SET lua-time-limit 5000",
		"n2: SCRIPT KILL", "n2: CONFIG SET lua-time-limit 5000")
}

// TestBusyScriptIsUndoneIfItFails: if a node does not take the setting, no script runs at the others.
func TestBusyScriptIsUndoneIfItFails(t *testing.T) {
	f := newFake(cluster.Quorum)
	f.errs["n2: CONFIG GET lua-time-limit"] = errBroken
	if _, err := busyScriptSpec.Inject(t.Context(), f.env(), "n1+n2"); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	if done := strings.Join(f.done(), "; "); !strings.HasSuffix(done, "n1: SCRIPT KILL; n1: CONFIG SET") {
		t.Error(done)
	}
}

func TestBusyScriptIsRefusedOnSentinel(t *testing.T) {
	err := busyScriptSpec.Check(newFake(cluster.Sentinel))
	if err == nil || !strings.Contains(err.Error(), "it needs topology single or quorum") {
		t.Errorf("error: %v", err)
	}
}

func TestBusyScriptOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	before := run(t, c, "n1", "CONFIG", "GET", "lua-time-limit")
	client := dial(t, c, 1)
	in := inject(t, busyScriptSpec, Env{Cluster: c}, "n1")
	takesEffect(t, in)
	const busy = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	for _, command := range []string{"PING", "SET k v", "EVALSHA x 0"} {
		client.send(t, command)
		client.expect(t, busy)
	}
	heals(t, in)
	client.send(t, "PING")
	client.expect(t, "+PONG")
	if after := run(t, c, "n1", "CONFIG", "GET", "lua-time-limit"); after.([]any)[1] != before.([]any)[1] {
		t.Errorf("lua-time-limit is %v, and was %v", after, before)
	}
}
