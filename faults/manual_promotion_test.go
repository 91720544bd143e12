package faults

import (
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestManualPromotion(t *testing.T) {
	f := newFake(cluster.Sentinel)
	in := inject(t, manualPromotionSpec, f.env(), "n3")
	noEffectYet(t, in)
	f.set(func() { f.roles["n3"] = "master" })
	if effect := takesEffect(t, in); effect != "n3 was promoted by hand" {
		t.Error(effect)
	}
	heals(t, in)
	did(t, f, "n3: REPLICAOF NO ONE")
	if in, err := manualPromotionSpec.Inject(t.Context(), f.env(), "n1"); err == nil || in != nil {
		t.Errorf("promoting the master: %v, %v", in, err)
	}
	f.errs["n2: REPLICAOF NO ONE"] = errBroken
	if in, err := manualPromotionSpec.Inject(t.Context(), f.env(), "n2"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
}

func TestManualPromotionOnRealServers(t *testing.T) {
	t.Parallel()
	c := startServers(t, cluster.Sentinel)
	in := inject(t, manualPromotionSpec, Env{Cluster: c}, "n3")
	takesEffect(t, in)
	heals(t, in)
	if testing.Short() {
		t.Log("not awaited: Sentinel makes n3 a replica again after 8 s or more")
		return
	}
	becomes(t, c, "master", "slave", "slave")
	if role(t, c, "n1") != "master" {
		t.Error("n1 is no longer master")
	}
}
