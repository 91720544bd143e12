package reports

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/lockchaos/lockchaos/checker"
)

// expectation is the expected and the actual outcome of a property, or the
// expected and the actual verdict or class.
type expectation struct {
	Name     string `json:"name"`     // a property, "verdict" or "class"
	Expected string `json:"expected"` // empty: the scenario expects nothing
	Actual   string `json:"actual"`   // empty: not judged
	Met      bool   `json:"met"`
}

// expectations compares the run with what its scenario expects: the verdict
// first, then every property that was judged or expected. As in
// [checker.Unexpected], any outcome meets a missing expectation, because an
// expected overlap may cause other violations, such as damage. A scenario
// without any expectation expects a safe verdict.
func expectations(r *Run) []expectation {
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
	var all []expectation
	for _, name := range names {
		e := expectation{Name: name, Expected: expect[name], Actual: actual[name]}
		e.Met = e.Expected == "" || e.Expected == e.Actual
		if len(r.Manifest.Expect) == 0 && e.Actual == string(checker.Violated) {
			e.Met = false
		}
		all = append(all, e)
	}
	return all
}

// asExpected reports whether the run was judged and every expectation is met.
func asExpected(r *Run) bool {
	for _, e := range expectations(r) {
		if !e.Met {
			return false
		}
	}
	return r.Judged
}

// text is the outcome beside the expected one.
func (e expectation) text() string {
	actual := cmp.Or(e.Actual, "not judged")
	if e.Expected == "" {
		return e.Name + ": " + actual
	}
	return fmt.Sprintf("%s: expected %s, got %s", e.Name, e.Expected, actual)
}
