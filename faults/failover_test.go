package faults

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestFailover(t *testing.T) {
	f := newFake(cluster.Sentinel)
	in := inject(t, failoverSpec, f.env(), "n1")
	noEffectYet(t, in)                         // accepted, not yet done
	f.set(func() { f.roles["n3"] = "master" }) // n1 still reports that it is master too
	if effect := takesEffect(t, in); effect != "n3 is master instead of n1" {
		t.Error(effect)
	}
	heals(t, in)
	if diff := cmp.Diff([]string{"promote"}, f.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	f.errs["promote"] = errBroken
	if in, err := failoverSpec.Inject(t.Context(), f.env(), "n1"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
}

func TestFailoverObservationIsCancelled(t *testing.T) {
	in := inject(t, failoverSpec, newFake(cluster.Sentinel).env(), "n1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if effect, err := in.Observe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Observe = %q, %v", effect, err)
	}
}

func TestFailoverOnRealServers(t *testing.T) {
	t.Parallel()
	c := startServers(t, cluster.Sentinel)
	in := inject(t, failoverSpec, Env{Cluster: c}, "n1")
	takesEffect(t, in)
	heals(t, in)
	if testing.Short() {
		t.Log("not awaited: Sentinel demotes the old master about ten seconds later")
		return
	}
	becomes(t, c, "master", "slave", "slave")
	if role(t, c, "n1") != "slave" {
		t.Error("n1 is master again")
	}
}
