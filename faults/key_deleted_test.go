package faults

import (
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestKeyDeleted(t *testing.T) {
	f := newFake(cluster.Quorum)
	in := inject(t, keyDeletedSpec, f.env(), "n3")
	f.set(func() { f.replies["DEL orders"] = int64(0) })
	noEffectYet(t, in)
	f.set(func() { f.replies["DEL orders"] = int64(1) })
	if effect := takesEffect(t, in); effect != "1 key deleted" {
		t.Error(effect)
	}
	f.done()
	takesEffect(t, in) // once
	did(t, f)
}

// TestKeyDeletedBesideRefused: a node of a cluster refuses the keys of other nodes, and loses its own.
func TestKeyDeletedBesideRefused(t *testing.T) {
	f := newFake(cluster.Sharded)
	env := f.env()
	env.Keys = []string{"a", "orders", "z"}
	moved := errors.New("MOVED 105 n2")
	f.set(func() {
		f.errs["n3: DEL a"], f.errs["n3: DEL z"] = moved, moved
		f.replies["DEL orders"] = int64(1)
	})
	if effect := takesEffect(t, inject(t, keyDeletedSpec, env, "n3")); effect != "1 key deleted" {
		t.Error(effect)
	}
}

func TestKeyDeletedOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	in := inject(t, keyDeletedSpec, Env{Cluster: c, Keys: []string{"a", "orders"}}, "n1")
	noEffectYet(t, in)
	run(t, c, "n1", "SET", "orders", "v")
	run(t, c, "n1", "SET", "other", "v")
	takesEffect(t, in)
	if got := run(t, c, "n1", "EXISTS", "orders", "other"); got != int64(1) {
		t.Errorf("%v keys are left, want one", got)
	}
	heals(t, in)
}
