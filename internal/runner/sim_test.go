package runner

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
)

// simulate runs s on simulated servers and returns the outcome and the history's bytes.
func simulate(t *testing.T, s scenarios.Scenario, seed, variation uint64) (*Outcome, []byte) {
	t.Helper()
	out, err := Run(context.Background(), Options{
		Scenario: s, Seed: seed, Variation: variation, Backend: NewSim(), Out: t.TempDir(), Version: "test",
	})
	// go-redis keeps timers of one bubble in pools, which must not reach the next.
	runtime.GC()
	runtime.GC()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out.Dir.File(rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	return out, text
}

// TestScenariosEndOnSimAsTheyExpect: the verdicts of real servers, see TestScenariosEndAsTheyExpect.
func TestScenariosEndOnSimAsTheyExpect(t *testing.T) {
	for _, name := range scenarios.Names() {
		t.Run(name, func(t *testing.T) {
			s := load(t, name)
			if why := simSpec.Unable(s); why != "" {
				t.Skipf("NOT RUN: %s", why)
			}
			out, _ := simulate(t, s, 1, 0)
			for _, wrong := range checker.Unexpected(out.Judgement, out.Manifest.Expect) {
				t.Errorf("%s (%s)", wrong, out.Judgement.Sentence)
			}
		})
	}
}

func TestTheSameSeedIsTheSameRun(t *testing.T) {
	s := load(t, "failover")
	_, first := simulate(t, s, 7, 0)
	for range 3 {
		if _, again := simulate(t, s, 7, 0); !bytes.Equal(first, again) {
			t.Fatal("the same seed made another history")
		}
	}
	for what, seeds := range map[string][2]uint64{"another seed": {8, 0}, "a variation": {7, 1}} {
		if _, other := simulate(t, s, seeds[0], seeds[1]); bytes.Equal(first, other) {
			t.Errorf("%s made the same history", what)
		}
	}
}

func TestSimulationIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out, err := Run(ctx, Options{
		Scenario: load(t, "failover", "duration=1h"), Seed: 1, Backend: NewSim(), Out: t.TempDir(), Version: "test",
		Watch: func(s Status) {
			if s.Grants > 0 {
				cancel()
			}
		},
	})
	if !errors.Is(err, ErrInterrupted) || out.Manifest.State != rundir.Interrupted {
		t.Fatalf("Run: %v, want ErrInterrupted", err)
	}
}

func TestForeignClientsAreNotSimulated(t *testing.T) {
	if why := simSpec.Unable(load(t, "failover", "lock=exec:true")); why == "" {
		t.Error("a program of the user's was to run in virtual time")
	}
}
