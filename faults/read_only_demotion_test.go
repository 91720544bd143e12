package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestReadOnlyDemotion(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, readOnlyDemotionSpec, f.env(), "n1")
	did(t, f, "n1: REPLICAOF 127.0.9.9 1")
	noEffectYet(t, in)
	f.set(func() { f.roles["n1"] = "slave" })
	takesEffect(t, in)
	heals(t, in)
	did(t, f, "n1: REPLICAOF NO ONE")
}

func TestReadOnlyDemotionOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	run(t, c, "n1", "SET", "before", "v")
	client := dial(t, c, 1)
	in := inject(t, readOnlyDemotionSpec, Env{Cluster: c}, "n1")
	takesEffect(t, in)
	client.send(t, "SET k v")
	client.expect(t, "-READONLY You can't write against a read only replica.")
	heals(t, in)
	client.send(t, "SET k v")
	client.expect(t, "+OK")
	if got := run(t, c, "n1", "GET", "before"); got != "v" {
		t.Errorf("the key set before is %v", got)
	}
}
