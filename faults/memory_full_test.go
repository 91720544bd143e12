package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestMemoryFull(t *testing.T) {
	f := newFake(cluster.Single)
	f.replies["INFO errorstats"] = "# Errorstats\r\nerrorstat_OOM:count=2\r\n"
	f.replies["CONFIG GET maxmemory"] = []any{"maxmemory", "1073741824"}
	f.replies["CONFIG GET maxmemory-policy"] = []any{"maxmemory-policy", "volatile-ttl"}
	in := inject(t, memoryFullSpec, f.env(), "n1")
	did(t, f, "n1: INFO errorstats", "n1: CONFIG GET maxmemory", "n1: CONFIG GET maxmemory-policy",
		"n1: CONFIG SET maxmemory 1 maxmemory-policy noeviction")
	noEffectYet(t, in) // no client has written
	f.set(func() { f.replies["INFO errorstats"] = "# Errorstats\r\nerrorstat_OOM:count=5\r\n" })
	if effect := takesEffect(t, in); effect != "3 OOM replies" {
		t.Error(effect)
	}
	f.done()
	heals(t, in)
	did(t, f, "n1: CONFIG SET maxmemory 1073741824 maxmemory-policy volatile-ttl")
}

// TestMemoryFullIsUndoneIfItFails: if one node of a majority refuses the limit, the others get theirs back.
func TestMemoryFullIsUndoneIfItFails(t *testing.T) {
	f := newFake(cluster.Quorum)
	f.errs["n2: CONFIG SET maxmemory 1 maxmemory-policy noeviction"] = errBroken
	f.replies["CONFIG GET maxmemory"] = []any{"maxmemory", "0"}
	if _, err := memoryFullSpec.Inject(t.Context(), f.env(), "n1+n2"); err == nil {
		t.Fatal("a fault that a node refused was injected")
	}
	done := f.done()
	if last := done[len(done)-1]; last != "n1: CONFIG SET maxmemory 0" {
		t.Errorf("the last command was %q", last)
	}
}

func TestMemoryFullOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	run(t, c, "n1", "SET", "k", "v")
	in := inject(t, memoryFullSpec, Env{Cluster: c}, "n1")
	client := dial(t, c, 1)
	client.send(t, "SET k w")
	client.expect(t, "-OOM command not allowed when used memory > 'maxmemory'.")
	takesEffect(t, in)
	client.send(t, "DEL k")
	client.expect(t, ":1")
	heals(t, in)
	client.send(t, "SET k x")
	client.expect(t, "+OK")
}
