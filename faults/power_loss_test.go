package faults

import (
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestPowerLoss(t *testing.T) {
	f := newFake(cluster.Quorum)
	in := inject(t, powerLossSpec, f.env(), "n4")
	did(t, f, "power off n4")
	takesEffect(t, in)
	heals(t, in)
	did(t, f, "restart n4")
}

func TestPowerLossOfARealServer(t *testing.T) {
	c := startServersWith(t, cluster.Topology{Kind: cluster.Single, Options: map[string]string{
		"appendonly": "yes", "appendfsync": "no"}}, powerLossSpec.Requires)
	run(t, c, "n1", "SET", "k", "v")
	in := inject(t, powerLossSpec, Env{Cluster: c}, "n1")
	takesEffect(t, in)
	heals(t, in)
	if got := run(t, c, "n1", "GET", "k"); got != nil {
		t.Errorf("the key is %v although it was never fsynced", got)
	}
}

// TestPowerLossOfAMajority: all of them are down before the first restarts.
func TestPowerLossOfAMajority(t *testing.T) {
	f := newFake(cluster.Quorum)
	in := inject(t, powerLossSpec, f.env(), "n1+n2+n3")
	did(t, f, "power off n1", "power off n2", "power off n3")
	if effect := takesEffect(t, in); effect != "3 processes exited" {
		t.Error(effect)
	}
	heals(t, in)
	did(t, f, "restart n1", "restart n2", "restart n3")
	f.errs["power off n2"] = errBroken
	if in, err := powerLossSpec.Inject(t.Context(), f.env(), "n1+n2"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
	did(t, f, "power off n1", "power off n2", "restart n1")
}
