package faults

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestRestart(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, restartSpec, f.env(), "n1")
	did(t, f, "kill n1")
	bites(t, in)
	heals(t, in)
	did(t, f, "restart n1")
	f.errs["kill n1"] = errBroken
	if in, err := restartSpec.Inject(t.Context(), f.env(), "n1"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
	f.errs = map[string]error{"restart n1": errBroken}
	if _, err := inject(t, restartSpec, f.env(), "n1").Heal(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("Heal = %v", err)
	}
}

func TestRestartOfARealServer(t *testing.T) {
	c := startWith(t, cluster.Topology{Kind: cluster.Single, Options: map[string]string{"appendonly": "yes"}},
		cluster.Requirements{})
	command(t, c, "n1", "SET", "k", "v")
	in := inject(t, restartSpec, Env{Cluster: c}, "n1")
	bites(t, in)
	heals(t, in)
	if got := command(t, c, "n1", "GET", "k"); got != "v" {
		t.Errorf("the key is %v", got)
	}
}

// TestHalfAnInjectionIsUndone: servers that were ended already come back also when the run is over before the rest
// is, and what does not come back is told.
func TestHalfAnInjectionIsUndone(t *testing.T) {
	for name, revive := range map[string]func(context.Context, string) error{
		"back":     func(ctx context.Context, _ string) error { return ctx.Err() },
		"not back": func(context.Context, string) error { return errBroken },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, over := context.WithCancel(t.Context())
			var back []string
			end := func(_ context.Context, node string) error {
				if node == "n2" {
					over()
				}
				return ctx.Err()
			}
			in, err := down(ctx, "n1+n2+n3", end, func(ctx context.Context, node string) error {
				err := revive(ctx, node)
				if err == nil {
					back = append(back, node)
				}
				return err
			})
			if in != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("down = %v, %v", in, err)
			}
			returns := name == "back"
			if returns != slices.Equal(back, []string{"n1"}) || returns == errors.Is(err, errBroken) {
				t.Errorf("%v came back: %v", back, err)
			}
		})
	}
}
