package main

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/suite"
)

// TestSuiteOfLibraries: each line of expect.tsv is a row; where its adapter was not built, it is skipped and says so.
func TestSuiteOfLibraries(t *testing.T) {
	t.Setenv("LOCKCHAOS_ADAPTERS", t.TempDir()) // no adapter is built
	out := t.TempDir()
	code, _, stderr := chaos("suite", "--libraries", "--filter", "lock=redis-py/*,name=contention|gc-pause",
		"--backend", "process", "--out", out)
	if code != exitSafe {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	s, err := suite.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Libraries || len(s.Rows) < 2 {
		t.Errorf("libraries: %v, rows: %+v", s.Libraries, s.Rows)
	}
	for _, r := range s.Rows {
		if r.Outcome != suite.Skipped || !strings.HasPrefix(r.Scenario, "redis-py/") || r.Expected == "" ||
			!strings.Contains(strings.Join(r.Why, " "), "chaos adapters build redis-py") {
			t.Errorf("%+v", r)
		}
	}
	for _, args := range [][]string{{"--lock", "reentrant"}, {"contention"}} {
		if code, _, stderr := chaos(append([]string{"suite", "--libraries"}, args...)...); code != exitUsage {
			t.Errorf("%v: exit code %d: %s", args, code, stderr)
		}
	}
}

// TestOutcomeOfLibrary: a line may expect one of several outcomes.
func TestOutcomeOfLibrary(t *testing.T) {
	e := adapters.Expectation{Outcome: "safe or outlived lease"}
	for _, c := range []struct {
		j    checker.Judgement
		want suite.Outcome
	}{
		{checker.Judgement{Verdict: checker.Safe}, suite.AsExpected},
		{checker.Judgement{Verdict: checker.Unsafe, Class: checker.OutlivedLease}, suite.AsExpected},
		{checker.Judgement{Verdict: checker.Unsafe, Class: checker.BrokenPromise}, suite.Differs},
		{checker.Judgement{Verdict: checker.Unsafe}, suite.Differs},
		{checker.Judgement{Verdict: checker.Inconclusive}, suite.Inconclusive},
	} {
		if got, why := compareLibrary(e, c.j); got != c.want || (len(why) == 0) != (got == suite.AsExpected) {
			t.Errorf("%s %s: %s, want %s: %v", c.j.Verdict, c.j.Class, got, c.want, why)
		}
	}
}
