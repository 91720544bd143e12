package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestClusterFailover(t *testing.T) {
	f := newFake(cluster.Sharded)
	in := inject(t, clusterFailoverSpec, f.env(), "n5")
	did(t, f, "n5: CLUSTER FAILOVER")
	noEffectYet(t, in)
	f.set(func() { f.roles["n5"] = "master" })
	takesEffect(t, in)
	heals(t, in)
}

// TestTakeOversOfRealServers: each of the three ways, one after the other, on one cluster.
func TestTakeOversOfRealServers(t *testing.T) {
	t.Parallel()
	c := startServers(t, cluster.Sharded)
	for _, step := range []struct {
		row  Spec
		node string
	}{{clusterFailoverSpec, "n4"}, {clusterFailoverForceSpec, "n5"}, {clusterTakeoverSpec, "n6"}} {
		in := inject(t, step.row, Env{Cluster: c}, step.node)
		takesEffect(t, in)
		heals(t, in)
	}
	becomes(t, c, "master", "master", "master", "slave", "slave", "slave")
}
