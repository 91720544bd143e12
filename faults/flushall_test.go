package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestFlushall(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, flushallSpec, f.env(), "n1")
	f.set(func() { f.replies["DBSIZE"] = int64(0) })
	noEffectYet(t, in)
	f.done()
	f.set(func() { f.replies["DBSIZE"] = int64(2) })
	if effect := takesEffect(t, in); effect != "2 keys removed" {
		t.Error(effect)
	}
	did(t, f, "n1: DBSIZE", "n1: FLUSHALL")
	heals(t, in)
}

func TestFlushallOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	run(t, c, "n1", "SET", "k", "v")
	in := inject(t, flushallSpec, Env{Cluster: c}, "n1")
	takesEffect(t, in)
	if got := run(t, c, "n1", "DBSIZE"); got != int64(0) {
		t.Errorf("%v keys are left", got)
	}
	heals(t, in)
}

// TestHealedCommandDoesNothing: a command that had nothing to break before it was healed breaks nothing afterwards.
func TestHealedCommandDoesNothing(t *testing.T) {
	c := startServers(t, cluster.Single)
	in := inject(t, flushallSpec, Env{Cluster: c}, "n1")
	noEffectYet(t, in)
	heals(t, in)
	run(t, c, "n1", "SET", "k", "v")
	noEffectYet(t, in)
	if got := run(t, c, "n1", "GET", "k"); got != "v" {
		t.Errorf("k is %v", got)
	}
}
