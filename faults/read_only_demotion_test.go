package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestReadOnlyDemotion(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, readOnlyDemotionSpec, f.env(), "n1")
	did(t, f, "n1: REPLICAOF 127.0.9.9 1")
	doesNotBite(t, in)
	f.set(func() { f.roles["n1"] = "slave" })
	bites(t, in)
	heals(t, in)
	did(t, f, "n1: REPLICAOF NO ONE")
}

func TestReadOnlyDemotionOfARealServer(t *testing.T) {
	c := servers(t, cluster.Single)
	command(t, c, "n1", "SET", "before", "v")
	client := dial(t, c, 1)
	in := inject(t, readOnlyDemotionSpec, Env{Cluster: c}, "n1")
	bites(t, in)
	client.say(t, "SET k v")
	client.hears(t, "-READONLY You can't write against a read only replica.")
	heals(t, in)
	client.say(t, "SET k v")
	client.hears(t, "+OK")
	if got := command(t, c, "n1", "GET", "before"); got != "v" {
		t.Errorf("what was there before is %v", got)
	}
}
