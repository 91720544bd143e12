package faults

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestPauseNode(t *testing.T) {
	f := newFake(cluster.Quorum)
	in := inject(t, pauseNodeSpec, f.env(), "n4")
	takesEffect(t, in)
	heals(t, in)
	if diff := cmp.Diff([]string{"pause n4", "resume n4"}, f.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	f.errs["pause n4"] = errBroken
	if in, err := pauseNodeSpec.Inject(t.Context(), f.env(), "n4"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
	for resume, want := range map[error]error{errBroken: errBroken, fmt.Errorf("n4: %w", cluster.ErrDown): nil} {
		f.errs = map[string]error{"resume n4": resume}
		if how, err := inject(t, pauseNodeSpec, f.env(), "n4").Heal(t.Context()); !errors.Is(err, want) || how == "" {
			t.Errorf("Resume = %v: Heal = %q, %v", resume, how, err)
		}
	}
}

func TestPauseNodeOnRealServers(t *testing.T) {
	c := startServers(t, cluster.Single)
	in := inject(t, pauseNodeSpec, Env{Cluster: c}, "n1")
	takesEffect(t, in)
	if got := role(t, c, "n1"); got != "" {
		t.Errorf("a stopped node reports the role %s", got)
	}
	heals(t, in)
	becomes(t, c, "master")

	paused := inject(t, pauseNodeSpec, Env{Cluster: c}, "n1")
	killed := inject(t, killSpec, Env{Cluster: c}, "n1") // another fault, meanwhile
	if how := heals(t, paused); how != "n1 was killed while stopped" {
		t.Errorf("healed: %s", how)
	}
	heals(t, killed)
	becomes(t, c, "master")
}
