package faults

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestPauseClient(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, pauseClientSpec, f.env(), "client:3")
	takesEffect(t, in)
	heals(t, in)
	if diff := cmp.Diff([]string{"stop 3", "continue 3"}, f.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	f.errs["stop 3"] = errBroken
	if in, err := pauseClientSpec.Inject(t.Context(), f.env(), "client:3"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
	f.errs = map[string]error{"continue 3": errBroken}
	if _, err := inject(t, pauseClientSpec, f.env(), "client:3").Heal(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("Heal = %v", err)
	}
	for _, bad := range []string{"n1", "client:", "client:x", ""} {
		_, err := pauseClientSpec.Inject(t.Context(), f.env(), bad)
		if err == nil || !strings.Contains(err.Error(), "not a client") {
			t.Errorf("Inject(%q) = %v", bad, err)
		}
	}
}

// oneProcess is a client that is a real process.
type oneProcess struct{ *child.Process }

func (o oneProcess) Stop(int) error     { return o.Process.Stop() }
func (o oneProcess) Continue(int) error { return o.Process.Continue() }
func (o oneProcess) Crash(int) error    { return o.Process.Kill() }

// StartAgain is not needed here.
func (o oneProcess) StartAgain(context.Context, int) error { return nil }

func TestPauseClientOnARealProcess(t *testing.T) {
	p, err := child.Start(child.Spec{Path: "sleep", Args: []string{"600"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	in := inject(t, pauseClientSpec, Env{Clients: oneProcess{p}}, "client:0")
	takesEffect(t, in)
	if s, err := child.Stat(p.PID()); err != nil || s.State != 'T' {
		t.Errorf("state %c, %v, want T", s.State, err)
	}
	heals(t, in)
	if s, err := child.Stat(p.PID()); err != nil || s.State == 'T' {
		t.Errorf("state %c, %v after healing", s.State, err)
	}
}
