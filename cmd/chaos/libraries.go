package main

import (
	"fmt"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/scenarios"
)

// loadLibraries loads the lines of adapters/*/expect.tsv that the filter chooses. Those of an adapter that was not
// built are skipped.
func (o *suiteOptions) loadLibraries(filter suite.Filter) error {
	catalog, err := adapters.Catalog()
	if err != nil {
		return err
	}
	for _, a := range catalog {
		all, err := a.Expected()
		if err != nil {
			return err
		}
		unfit := ""
		if err := a.Ready(); err != nil {
			unfit = err.Error()
		}
		for _, e := range all {
			with := runOptions{lock: e.Lock, set: []string{adapters.InitTimeout}}
			scenario, err := scenarios.Load(e.Scenario, with.overrides()...)
			if err != nil {
				return fmt.Errorf("%s in %s: %w", e.Lock, e.Scenario, err)
			}
			x := suite.Scenario{
				Arg: e.Scenario, Scenario: scenario, Unfit: unfit, Args: []string{"--lock", e.Lock, "--set", adapters.InitTimeout},
				Library: &suite.Library{Lock: e.Lock, Expected: e.Outcome,
					Compare: func(j checker.Judgement) (suite.Outcome, []string) { return compareLibrary(e, j) }},
			}
			if filter.Matches(x) {
				o.Scenarios = append(o.Scenarios, x)
			}
		}
	}
	return o.chosen()
}

// compareLibrary compares a run with a line of expect.tsv.
func compareLibrary(e adapters.Expectation, j checker.Judgement) (suite.Outcome, []string) {
	got := suite.LibraryOutcome(j)
	if e.Allows(got) {
		return suite.AsExpected, nil
	}
	why := []string{fmt.Sprintf("outcome: expected %s, got %s", e.Outcome, got)}
	if got == string(checker.Inconclusive) {
		return suite.Inconclusive, why
	}
	return suite.Differs, why
}
