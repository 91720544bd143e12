package faults

import (
	"context"
	"errors"
	"sync"
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

// concurrentFake is a fake that acts on several nodes at the same time, as real servers do.
type concurrentFake struct{ *fake }

func (concurrentFake) Each(nodes []string, do func(node string) error) []error {
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, node := range nodes {
		all.Go(func() { errs[i] = do(node) })
	}
	all.Wait()
	return errs
}

// TestPowerIsLostTogether: no server waits until the power of another is cut, or until another has restarted. In a
// container that takes so long that the rest would have written the grant to disk.
func TestPowerIsLostTogether(t *testing.T) {
	var down, up sync.WaitGroup
	down.Add(3)
	up.Add(3)
	together := func(all *sync.WaitGroup) func(context.Context, string) error {
		return func(context.Context, string) error {
			all.Done()
			all.Wait()
			return nil
		}
	}
	in, err := outage{down: together(&down), up: together(&up)}.inject(
		t.Context(), concurrentFake{newFake(cluster.Quorum)}, "n1+n2+n3")
	if err != nil {
		t.Fatal(err)
	}
	heals(t, in)
}
