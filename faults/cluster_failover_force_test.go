package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestClusterFailoverForce(t *testing.T) {
	f := newFake(cluster.Sharded)
	in := inject(t, clusterFailoverForceSpec, f.env(), "n5")
	did(t, f, "n5: CLUSTER FAILOVER FORCE")
	noEffectYet(t, in)
	f.set(func() { f.roles["n5"] = "master" })
	takesEffect(t, in)
	heals(t, in)
}
