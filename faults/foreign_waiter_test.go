package faults

import (
	"reflect"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestForeignWaiterOfARealServer: the fault waits for a waiter that is in the list and in a sorted set, and then comes
// before it in the one and after it in the other.
func TestForeignWaiterOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	in := inject(t, foreignWaiterSpec, Env{Cluster: c, Keys: []string{"a", "orders"}}, "n1")
	run(t, c, "n1", "ZADD", "{orders}:permits", "5000", "w")
	noEffectYet(t, in)
	run(t, c, "n1", "RPUSH", "{orders}:queue", "v")
	noEffectYet(t, in)
	run(t, c, "n1", "ZADD", "{orders}:waiters", "5000", "v")
	if effect := takesEffect(t, in); effect != "an entry of another program heads {orders}:queue" {
		t.Error(effect)
	}
	if got := run(t, c, "n1", "LRANGE", "{orders}:queue", "0", "-1"); !reflect.DeepEqual(got, []any{"another-program", "v"}) {
		t.Errorf("the list has %v", got)
	}
	for key, want := range map[string]int64{"{orders}:waiters": 2, "{orders}:permits": 1} {
		if got := run(t, c, "n1", "ZCARD", key); got != want {
			t.Errorf("%s has %v entries, want %d", key, got, want)
		}
	}
	heals(t, in)
}
