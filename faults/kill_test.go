package faults

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestKill(t *testing.T) {
	f := newFake(cluster.Quorum)
	in := inject(t, killSpec, f.env(), "n2")
	takesEffect(t, in)
	heals(t, in)
	if diff := cmp.Diff([]string{"kill n2", "restart n2"}, f.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

func TestKillThatFails(t *testing.T) {
	f := newFake(cluster.Single)
	f.errs["kill n1"] = errBroken
	if in, err := killSpec.Inject(t.Context(), f.env(), "n1"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
	f.errs = map[string]error{"restart n1": errBroken}
	delete(f.roles, "n1") // it is down
	in := inject(t, killSpec, f.env(), "n1")
	if _, err := in.Heal(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("Heal = %v", err)
	}
}

func TestKillOnRealServers(t *testing.T) {
	c := startServers(t, cluster.Single)
	once := inject(t, killSpec, Env{Cluster: c}, "n1")
	takesEffect(t, once)
	if got := role(t, c, "n1"); got != "" {
		t.Errorf("a killed node reports the role %s", got)
	}
	twice := inject(t, killSpec, Env{Cluster: c}, "n1") // as a random plan may
	paused, err := pauseNodeSpec.Inject(t.Context(), Env{Cluster: c}, "n1")
	if !errors.Is(err, cluster.ErrDown) {
		t.Errorf("pausing a dead node = %v, %v, want ErrDown", paused, err)
	}
	heals(t, once)
	if how := heals(t, twice); how != "n1 already runs" {
		t.Errorf("healed the second time: %s", how)
	}
	becomes(t, c, "master")
}
