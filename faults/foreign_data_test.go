package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestForeignDataOfARealServer: free keys get a string or a hash, those of a lock are left alone, and healing names
// those that were changed.
func TestForeignDataOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	run(t, c, "n1", "SET", "held", "h:1")
	in := inject(t, foreignDataSpec, Env{Cluster: c, Keys: []string{"a", "b", "held", "d", "e", "f"}}, "n1")
	if effect := takesEffect(t, in); effect != "data at 5 keys" {
		t.Error(effect)
	}
	for key, want := range map[string]string{"a": "string", "b": "hash", "held": "string", "d": "hash"} {
		if got := run(t, c, "n1", "TYPE", key); got != want {
			t.Errorf("%s is a %v, want a %s", key, got, want)
		}
	}
	run(t, c, "n1", "DEL", "a")
	run(t, c, "n1", "HSET", "b", "owner", "x")
	run(t, c, "n1", "SET", "d", "data of another program")
	if how, err := in.Heal(t.Context()); err != nil || how != "foreign data lost: a, b, d" {
		t.Errorf("healed: %q, %v", how, err)
	}
	if got := run(t, c, "n1", "EXISTS", "e", "f"); got != int64(0) {
		t.Errorf("%v keys are left", got)
	}
	if got := run(t, c, "n1", "GET", "held"); got != "h:1" {
		t.Errorf("the lock is %v", got)
	}
}

// TestForeignDataLeftAlone: what nobody has changed is removed.
func TestForeignDataLeftAlone(t *testing.T) {
	c := startServers(t, cluster.Single)
	in := inject(t, foreignDataSpec, Env{Cluster: c, Keys: []string{"a", "b"}}, "n1")
	takesEffect(t, in)
	if how := heals(t, in); how != "the data are removed" {
		t.Error(how)
	}
}
