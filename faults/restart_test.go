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
	takesEffect(t, in)
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
	c := startServersWith(t, cluster.Topology{Kind: cluster.Single, Options: map[string]string{"appendonly": "yes"}},
		cluster.Requirements{})
	run(t, c, "n1", "SET", "k", "v")
	in := inject(t, restartSpec, Env{Cluster: c}, "n1")
	takesEffect(t, in)
	heals(t, in)
	if got := run(t, c, "n1", "GET", "k"); got != "v" {
		t.Errorf("the key is %v", got)
	}
}

// TestPartialInjectionIsUndone: servers that are already down are brought back, also when the run ends during the
// injection, and a failure to do so is returned.
func TestPartialInjectionIsUndone(t *testing.T) {
	for name, up := range map[string]func(context.Context, string) error{
		"back":     func(ctx context.Context, _ string) error { return ctx.Err() },
		"not back": func(context.Context, string) error { return errBroken },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var back []string
			in, err := outage{
				down: func(_ context.Context, node string) error {
					if node == "n2" {
						cancel()
					}
					return ctx.Err()
				},
				up: func(ctx context.Context, node string) error {
					err := up(ctx, node)
					if err == nil {
						back = append(back, node)
					}
					return err
				},
			}.inject(ctx, newFake(cluster.Quorum), "n1+n2+n3")
			if in != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("inject = %v, %v", in, err)
			}
			returns := name == "back"
			if returns != slices.Equal(back, []string{"n1"}) || returns == errors.Is(err, errBroken) {
				t.Errorf("%v came back: %v", back, err)
			}
		})
	}
}
