package faults

import (
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestRestartEmpty(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, restartEmptySpec, f.env(), "n1")
	did(t, f, "kill n1")
	takesEffect(t, in)
	heals(t, in)
	did(t, f, "wipe n1", "restart n1")
	f.errs["kill n1"] = errBroken
	if in, err := restartEmptySpec.Inject(t.Context(), f.env(), "n1"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
	f.errs = map[string]error{"restart n1": errBroken}
	if _, err := inject(t, restartEmptySpec, f.env(), "n1").Heal(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("Heal = %v", err)
	}
}

func TestRestartEmptyOfARealServer(t *testing.T) {
	c := startServersWith(t, cluster.Topology{Kind: cluster.Single, Options: map[string]string{"appendonly": "yes"}},
		cluster.Requirements{})
	run(t, c, "n1", "SET", "k", "v")
	in := inject(t, restartEmptySpec, Env{Cluster: c}, "n1")
	takesEffect(t, in)
	heals(t, in)
	if got := run(t, c, "n1", "GET", "k"); got != nil {
		t.Errorf("the key is %v", got)
	}
}
