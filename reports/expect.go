package reports

import (
	"maps"
	"slices"

	"github.com/lockchaos/lockchaos/checker"
)

// Expectation is what a scenario expects of a property, of the verdict or of
// its class, beside what came out.
type Expectation struct {
	Name     string `json:"name"`     // a property, "verdict" or "class"
	Expected string `json:"expected"` // empty: the scenario says nothing of it
	Actual   string `json:"actual"`   // empty: not judged
	Met      bool   `json:"met"`
}

// Expectations puts what came out beside what the scenario expects: the verdict
// first, then every property that was judged or expected. The rule is that of
// [checker.Unexpected]: what a scenario says nothing of is met, because where an
// overlap is expected, damage and the like follow from it. A scenario without
// any expectation expects a safe verdict.
func Expectations(r *Run) []Expectation {
	expect := r.Manifest.Expect
	if len(expect) == 0 {
		expect = map[string]string{checker.ExpectVerdict: string(checker.Safe)}
	}
	actual := map[string]string{checker.ExpectClass: string(r.Judgement.Class)}
	names := []string{checker.ExpectVerdict}
	if r.Judged {
		actual[checker.ExpectVerdict] = string(r.Judgement.Verdict)
	}
	for _, res := range r.Judgement.Results {
		actual[string(res.Property)] = string(res.Outcome)
		names = append(names, string(res.Property))
	}
	for _, name := range slices.Sorted(maps.Keys(expect)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var all []Expectation
	for _, name := range names {
		e := Expectation{Name: name, Expected: expect[name], Actual: actual[name]}
		e.Met = e.Expected == "" || e.Expected == e.Actual
		if len(r.Manifest.Expect) == 0 && e.Actual == string(checker.Violated) {
			e.Met = false
		}
		all = append(all, e)
	}
	return all
}

// Met says whether a run was judged and came out as its scenario expects.
func Met(r *Run) bool {
	for _, e := range Expectations(r) {
		if !e.Met {
			return false
		}
	}
	return r.Judged
}
