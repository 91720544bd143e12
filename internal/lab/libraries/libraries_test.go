package libraries

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/checker"
)

// TestDocumentIsOfTheStoredResults: docs/contributors/verdicts.md is what the results and expectations say.
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

// TestResultsAreExpected: every stored outcome is one that expect.tsv names.
func TestResultsAreExpected(t *testing.T) {
	catalog, err := adapters.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	expected := make(map[string]adapters.Expectation)
	for _, a := range catalog {
		all, err := a.Expected()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			expected[e.Lock+" "+e.Scenario] = e
		}
	}
	for _, r := range load(t) {
		e, known := expected[r.Lock+" "+r.Scenario]
		if !known {
			t.Errorf("%s in %s has results and no line in expect.tsv", r.Lock, r.Scenario)
			continue
		}
		most, outcome := 0, ""
		for name, n := range r.Outcomes {
			if n > most {
				most, outcome = n, name
			}
		}
		if !e.Allows(outcome) {
			t.Errorf("%s in %s: expected %s, got mostly %s (%v)", r.Lock, r.Scenario, e.Outcome, outcome, r.Outcomes)
		}
		for _, p := range e.Properties {
			if r.Properties[p] == 0 {
				t.Errorf("%s in %s: %s was never violated", r.Lock, r.Scenario, p)
			}
		}
	}
}

func load(t *testing.T) []Result {
	t.Helper()
	all, err := Load("results.json")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d results, %v", len(all), err)
	}
	return all
}

func TestAddAndSave(t *testing.T) {
	var r Result
	r.Add(checker.Judgement{Verdict: checker.Safe}, "first")
	r.Add(checker.Judgement{Verdict: checker.Unsafe, Sentence: "nobody was woken",
		Results: []checker.Result{{Property: checker.WakeUp, Outcome: checker.Violated}}}, "second")
	r.Add(checker.Judgement{Verdict: checker.Unsafe, Class: checker.BrokenPromise}, "third")
	if r.Runs() != 3 || counts(r.Outcomes) != "1 broken promise, 1 safe, 1 violated" ||
		counts(r.Properties) != "1 wake-up" || r.Command != "second" || r.Sentence != "nobody was woken" {
		t.Errorf("%+v", r)
	}
	file := filepath.Join(t.TempDir(), "results.json")
	r.Lock = "b/x"
	if err := Save(file, []Result{r, {Lock: "a/x"}}); err != nil {
		t.Fatal(err)
	}
	if all, err := Load(file); err != nil || len(all) != 2 || all[0].Lock != "a/x" || all[1].Runs() != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	safe := Result{Outcomes: map[string]int{"safe": 1}}
	if err := Save(file, []Result{safe}); err != nil {
		t.Fatal(err)
	}
	if all, err := Load(file); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	} else {
		all[0].Add(checker.Judgement{Verdict: checker.Unsafe,
			Results: []checker.Result{{Property: checker.WakeUp, Outcome: checker.Violated}}}, "fourth")
		if counts(all[0].Properties) != "1 wake-up" {
			t.Errorf("a violation after a stored result without one: %+v", all[0])
		}
	}
	if all, err := Load(file + ".none"); all != nil || err != nil {
		t.Errorf("no file: %v, %v", all, err)
	}
}
