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
	bites(t, in)
	heals(t, in)
	did(t, f, "restart n4")
}

func TestPowerLossOfARealServer(t *testing.T) {
	c := startWith(t, cluster.Topology{Kind: cluster.Single, Options: map[string]string{
		"appendonly": "yes", "appendfsync": "no"}}, powerLossSpec.Requires)
	command(t, c, "n1", "SET", "k", "v")
	in := inject(t, powerLossSpec, Env{Cluster: c}, "n1")
	bites(t, in)
	heals(t, in)
	if got := command(t, c, "n1", "GET", "k"); got != nil {
		t.Errorf("the key is %v, and was never fsynced", got)
	}
}

// TestPowerLossOfAMajority: all of them go before the first comes back.
func TestPowerLossOfAMajority(t *testing.T) {
	f := newFake(cluster.Quorum)
	in := inject(t, powerLossSpec, f.env(), "n1+n2+n3")
	did(t, f, "power off n1", "power off n2", "power off n3")
	if proof := bites(t, in); proof != "n1, n2, n3 are gone" {
		t.Error(proof)
	}
	heals(t, in)
	did(t, f, "restart n1", "restart n2", "restart n3")
	f.errs["power off n2"] = errBroken
	if in, err := powerLossSpec.Inject(t.Context(), f.env(), "n1+n2"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
	did(t, f, "power off n1", "power off n2", "restart n1")
}
