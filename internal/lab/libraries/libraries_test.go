package libraries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/evaluation"
	"github.com/lockchaos/lockchaos/internal/evaluation/tally"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// TestDocumentIsOfTheStoredResults: docs/contributors/verdicts.md agrees with the results and causes.
func TestDocumentIsOfTheStoredResults(t *testing.T) {
	want, err := Document(load(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../../docs/contributors/verdicts.md")
	if err != nil || string(got) != want {
		t.Errorf("verdicts.md differs from the results (%v): run `go run ./internal/lab/libraries/run -document`", err)
	}
}

// TestFindingsHaveCauses: causes.tsv has a line about each finding of a lock's own: its cause in the library, or that
// it is open.
func TestFindingsHaveCauses(t *testing.T) {
	findings := 0
	for _, r := range load(t) {
		for _, f := range r.Own() {
			findings++
			if Why(r.Lock, f) == "" {
				t.Errorf("%s: no line of causes.tsv is about %s, %s: %s", r.Lock, f.Property, f.Cause, f.Sentence)
			}
		}
	}
	if findings == 0 {
		t.Error("no finding of any lock: nothing was compared")
	}
}

// TestCommandsNameNoFiles: what repeats a finding is in the repository.
func TestCommandsNameNoFiles(t *testing.T) {
	for _, r := range load(t) {
		for _, f := range r.Findings {
			if strings.Contains(f.Repeat, ".yaml") {
				t.Errorf("%s: %s", f.ID(), f.Repeat)
			}
		}
	}
}

func load(t *testing.T) []evaluation.Report {
	t.Helper()
	all, err := Load("results.json")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d results, %v", len(all), err)
	}
	return all
}

// TestReadReplaces: a test replaces an older one of the same lock, and is stored without fields that the page does not
// show.
func TestReadReplaces(t *testing.T) {
	dir := t.TempDir()
	r := evaluation.Report{Lock: "redis-py/lock", Seed: 2, Result: tally.Result{Findings: []evaluation.Finding{{
		Seen: []tally.Seen{{Scenario: "contention", Runs: 1, Of: 1}}, Scenario: "contention",
		Own: true, Property: checker.WakeUp, Cause: "split-votes", Steps: []evidence.Step{{Text: "a step"}},
		File: "scenarios/generated-1.yaml", Repeat: "chaos run --scenario out/scenarios/generated-1.yaml"}}}}
	if err := r.Write(filepath.Join(dir, "redis-py_lock")); err != nil {
		t.Fatal(err)
	}
	all, err := Read(dir, []evaluation.Report{{Lock: "redsync/mutex"}, {Lock: "redis-py/lock", Seed: 1}})
	if err != nil || len(all) != 2 || all[1].Seed != 2 || all[1].Findings[0].Steps != nil {
		t.Fatalf("%+v, %v", all, err)
	}
	if got := all[1].Findings[0].Repeat; got != "chaos test --lock redis-py/lock --seed 2" {
		t.Errorf("a finding of a generated scenario is repeated by %q", got)
	}
	file := filepath.Join(dir, "results.json")
	if err := Save(file, all); err != nil {
		t.Fatal(err)
	}
	if stored, err := Load(file); err != nil || len(stored) != 2 || stored[0].Lock != "redis-py/lock" {
		t.Errorf("%+v, %v", stored, err)
	}
	if none, err := Load(file + ".none"); none != nil || err != nil {
		t.Errorf("no file: %v, %v", none, err)
	}
}
