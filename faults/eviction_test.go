package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestEviction(t *testing.T) {
	f := newFake(cluster.Single)
	f.replies["EXISTS orders"] = int64(0)
	in := inject(t, evictionSpec, f.env(), "n1")
	noEffectYet(t, in)
	f.done()
	f.set(func() {
		f.replies["EXISTS orders"] = int64(1)
		f.replies["INFO stats"] = "evicted_keys:4\r\n"
		f.replies["CONFIG GET maxmemory"] = []any{"maxmemory", "0"}
		f.replies["CONFIG GET maxmemory-policy"] = []any{"maxmemory-policy", "noeviction"}
	})
	noEffectYet(t, in) // nothing was evicted: it is retried, and the limit is removed each time
	if done := f.done(); done[len(done)-1] != "n1: CONFIG SET maxmemory 0 maxmemory-policy noeviction" {
		t.Errorf("done last: %q", done)
	}
	heals(t, in)
}

func TestEvictionOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	in := inject(t, evictionSpec, Env{Cluster: c, Keys: []string{"a", "b"}}, "n1")
	run(t, c, "n1", "SET", "other", "v") // not a lock
	noEffectYet(t, in)
	run(t, c, "n1", "SET", "b", "v")
	if effect := takesEffect(t, in); effect != "2 keys evicted" {
		t.Error(effect)
	}
	run(t, c, "n1", "SET", "b", "w") // memory is no longer limited
	heals(t, in)
}
