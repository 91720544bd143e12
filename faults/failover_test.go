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
	doesNotBite(t, in)                         // accepted is not done
	f.set(func() { f.roles["n3"] = "master" }) // n1 still says that it is master too
	if proof := bites(t, in); proof != "n3 is master in place of n1" {
		t.Error(proof)
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

func TestFailoverThatIsGivenUp(t *testing.T) {
	in := inject(t, failoverSpec, newFake(cluster.Sentinel).env(), "n1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if proof, err := in.Bite(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Bite = %q, %v", proof, err)
	}
}

func TestFailoverOnRealServers(t *testing.T) {
	t.Parallel()
	c := servers(t, cluster.Sentinel)
	in := inject(t, failoverSpec, Env{Cluster: c}, "n1")
	bites(t, in)
	heals(t, in)
	if testing.Short() {
		t.Log("not waited for: Sentinel turns the old master into a replica about ten seconds later")
		return
	}
	becomes(t, c, "master", "slave", "slave")
	if role(t, c, "n1") != "slave" {
		t.Error("n1 is master again")
	}
}
