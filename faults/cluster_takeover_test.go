package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestClusterTakeover(t *testing.T) {
	f := newFake(cluster.Sharded)
	in := inject(t, clusterTakeoverSpec, f.env(), "n5")
	did(t, f, "n5: CLUSTER FAILOVER TAKEOVER")
	noEffectYet(t, in)
	f.set(func() { f.roles["n5"] = "master" })
	takesEffect(t, in)
	heals(t, in)
}
