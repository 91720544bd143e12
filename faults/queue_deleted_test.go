package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestQueueDeleted: the fault waits for a list that is named after a lock and has two entries.
func TestQueueDeleted(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, queueDeletedSpec, f.env(), "n1")
	scan := "SCAN 0 MATCH *orders* COUNT 1000 TYPE list"
	f.set(func() { f.replies[scan] = []any{"7", []any{"orders"}} })
	noEffectYet(t, in)
	f.set(func() {
		f.replies["SCAN 7 MATCH *orders* COUNT 1000 TYPE list"] = []any{"0", []any{"{orders}:queue"}}
		f.replies["LLEN {orders}:queue"] = int64(1)
	})
	noEffectYet(t, in)
	f.set(func() { f.replies["LLEN {orders}:queue"] = int64(2) })
	if effect := takesEffect(t, in); effect != "{orders}:queue deleted with 2 waiters" {
		t.Error(effect)
	}
	heals(t, in)
}

func TestQueueDeletedOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	in := inject(t, queueDeletedSpec, Env{Cluster: c, Keys: []string{"a", "orders"}}, "n1")
	run(t, c, "n1", "RPUSH", "others", "v", "w")
	run(t, c, "n1", "ZADD", "{orders}:waiters", "1", "v", "2", "w")
	noEffectYet(t, in)
	run(t, c, "n1", "RPUSH", "{orders}:queue", "v", "w")
	takesEffect(t, in)
	if got := run(t, c, "n1", "EXISTS", "others", "{orders}:waiters", "{orders}:queue"); got != int64(2) {
		t.Errorf("%v keys are left, want two", got)
	}
	heals(t, in)
}
