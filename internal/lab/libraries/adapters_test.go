package libraries

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/backend/servers"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/internal/testkit/rerun"
	"github.com/lockchaos/lockchaos/scenarios"
)

// samples are two lines of expect.tsv: the first that is safe, and the first in which every run convicts the lock.
func samples(all []adapters.Expectation) (safe, convicted int) {
	safe = slices.IndexFunc(all, func(e adapters.Expectation) bool { return e.Outcome == "safe" })
	convicted = slices.IndexFunc(all, func(e adapters.Expectation) bool {
		return !slices.ContainsFunc(strings.Split(e.Outcome, " or "), func(outcome string) bool {
			return outcome == "safe" || outcome == "inconclusive"
		})
	})
	return safe, convicted
}

// TestEveryLibraryHasSamples: without such lines, TestAdaptersEndAsExpected would show nothing of a library.
func TestEveryLibraryHasSamples(t *testing.T) {
	catalog, err := adapters.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range catalog {
		all, err := a.Expected()
		if err != nil {
			t.Fatal(err)
		}
		if safe, convicted := samples(all); safe < 0 || convicted < 0 {
			t.Errorf("%s: expect.tsv needs a line that is safe, and one in which every run convicts the lock", a.Library)
		}
	}
}

// TestAdaptersEndAsExpected runs the samples of each library that was built. The other lines are nightly: chaos suite
// --libraries.
func TestAdaptersEndAsExpected(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: takes 10 s for each library; run without -short")
	}
	catalog, err := adapters.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range catalog {
		t.Run(a.Library, func(t *testing.T) {
			if err := a.Ready(); err != nil {
				t.Skip("NOT RUN:", err)
			}
			all, err := a.Expected()
			if err != nil {
				t.Fatal(err)
			}
			safe, convicted := samples(all)
			endsAsExpected(t, all[safe])
			endsAsExpected(t, all[convicted])
		})
	}
}

// endsAsExpected makes a run; package rerun says how often. A run that tested too little is repeated, whatever it
// shows: on a busy machine a fault may hit the request after the scenario's, and a lost reply to an acquire may convict
// a lock that a lost reply to a release does not.
func endsAsExpected(t *testing.T, e adapters.Expectation) {
	t.Helper()
	for try := 1; ; try++ {
		out, err := run(t.Context(), e, runner.Options{Seed: uint64(try), Out: t.TempDir(), Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		got := suite.LibraryOutcome(out.Judgement)
		if e.Allows(got) {
			return
		}
		r := out.Judgement.Result(checker.Exercised)
		if r.Outcome == checker.Undecided && rerun.Because(t, try, r.Summary) {
			continue
		}
		if !rerun.Again(t, try, out.Dir.Path) {
			t.Errorf("%s in %s: expected %s, got %s: %s", e.Lock, e.Scenario, e.Outcome, got, out.Judgement.Sentence)
			return
		}
	}
}

// run runs a scenario with a lock of an adapter, on real servers. What the options lack is set here.
func run(ctx context.Context, e adapters.Expectation, o runner.Options) (*runner.Outcome, error) {
	s, err := scenarios.Load(e.Scenario, scenarios.Sets([]string{"lock='" + e.Lock + "'", adapters.InitTimeout})...)
	if err != nil {
		return nil, err
	}
	o.Scenario, o.Backend = s, servers.Process().New(backend.Options{})
	return runner.Run(ctx, o)
}
