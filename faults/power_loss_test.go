package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/cluster"
)

func TestPowerLoss(t *testing.T) {
	f := newFake(cluster.Quorum)
	in := inject(t, powerLossSpec, f.env(), "n4")
	did(t, f, "power off n4")
	bites(t, in)
	heals(t, in)
	did(t, f, "restart n4")
}

func TestPowerLossOfARealServer(t *testing.T) {
	c := equipped(t, cluster.Topology{Kind: cluster.Single, Options: map[string]string{
		"appendonly": "yes", "appendfsync": "no"}}, powerLossSpec.Equip)
	command(t, c, "n1", "SET", "k", "v")
	in := inject(t, powerLossSpec, Env{Cluster: c}, "n1")
	bites(t, in)
	heals(t, in)
	if got := command(t, c, "n1", "GET", "k"); got != nil {
		t.Errorf("the key is %v, and was never fsynced", got)
	}
}
