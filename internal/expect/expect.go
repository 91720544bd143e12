// Package expect compares a judgement with the expectation of a scenario.
//
// Read [Compare] first.
package expect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
)

// Keys of an expectation besides the names of properties.
const (
	Verdict = "verdict" // safe, unsafe or inconclusive
	Class   = "class"   // of the verdict
)

// OutcomeWord separates the outcomes that an expectation allows: "holds or violated".
const OutcomeWord = " or "

// Outcomes are the outcomes that an expectation allows.
func Outcomes(expected string) []string { return strings.Split(expected, OutcomeWord) }

// Compare compares a judgement with an expectation by property name, "verdict" or "class": the verdict first, then
// every property that was judged or is expected, then the thresholds.
//
// An expectation that names a property is about all of them: the others must hold or not apply. An expectation that
// names none is about the verdict and its class alone. A property that was not judged is never as expected. If the
// verdict is not-run, only the verdict is compared.
func Compare(j checker.Judgement, expect map[string]string) []checker.Comparison {
	if j.Verdict == checker.NotRun {
		return []checker.Comparison{{Name: Verdict, Expected: expect[Verdict], Actual: string(j.Verdict)}}
	}
	actual := map[string]string{Verdict: string(j.Verdict), Class: string(j.Class)}
	names := []string{Verdict}
	complete := false
	for _, r := range j.Results {
		actual[string(r.Property)] = string(r.Outcome)
		names = append(names, string(r.Property))
	}
	for _, name := range slices.Sorted(maps.Keys(expect)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		complete = complete || name != Verdict && name != Class
	}
	all := make([]checker.Comparison, len(names))
	for i, name := range names {
		c := checker.Comparison{Name: name, Expected: expect[name], Actual: actual[name]}
		switch {
		case name == Class && j.Verdict != checker.Unsafe: // which alone has a class
			c.Met = slices.Contains(Outcomes(expect[Verdict]), string(j.Verdict))
		case c.Expected != "":
			c.Met = c.Actual != "" && slices.Contains(Outcomes(c.Expected), c.Actual)
		case complete && name != Verdict:
			c.Met = c.Actual == string(checker.Holds) || c.Actual == string(checker.NotApplicable)
		default:
			c.Met = expect[Verdict] != string(checker.Safe) || c.Actual != string(checker.Violated)
		}
		all[i] = c
	}
	return append(all, j.Thresholds...)
}

// Unexpected is a sentence for each difference that [Compare] finds.
func Unexpected(j checker.Judgement, expect map[string]string) []string {
	var wrong []string
	for _, c := range Compare(j, expect) {
		if !c.Met {
			wrong = append(wrong, Text(c))
		}
	}
	return wrong
}

// Text is the outcome beside the expected one.
func Text(c checker.Comparison) string {
	actual := cmp.Or(c.Actual, "not judged")
	switch {
	case c.Name == Class && c.Actual == "":
		return fmt.Sprintf("%s: expected %s, got none", c.Name, c.Expected)
	case c.Expected != "":
		return fmt.Sprintf("%s: expected %s, got %s", c.Name, c.Expected, actual)
	case !c.Met:
		return fmt.Sprintf("%s: %s, which the scenario does not expect", c.Name, actual)
	}
	return c.Name + ": " + actual
}
