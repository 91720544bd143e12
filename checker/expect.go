package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Keys of an expectation besides the names of properties.
const (
	ExpectVerdict = "verdict" // safe, unsafe or inconclusive
	ExpectClass   = "class"   // of the verdict
)

// eitherWord separates the outcomes that an expectation allows: "holds or violated".
const eitherWord = " or "

// ExpectedOutcomes are the outcomes that an expectation allows.
func ExpectedOutcomes(expected string) []string { return strings.Split(expected, eitherWord) }

// Comparison is the expected and the actual outcome of a property, or the expected and the actual verdict or class.
type Comparison struct {
	Name     string `json:"name"`     // a property, "verdict" or "class"
	Expected string `json:"expected"` // empty: the expectation does not name it
	Actual   string `json:"actual"`   // empty: not judged
	Met      bool   `json:"met"`
}

// Text is the outcome beside the expected one.
func (c Comparison) Text() string {
	actual := cmp.Or(c.Actual, "not judged")
	switch {
	case c.Expected != "":
		return fmt.Sprintf("%s: expected %s, got %s", c.Name, c.Expected, actual)
	case !c.Met:
		return fmt.Sprintf("%s: %s, which the scenario does not expect", c.Name, actual)
	}
	return c.Name + ": " + actual
}

// Compare compares a judgement with an expectation by property name, "verdict" or "class": the verdict first, then
// every property that was judged or is expected.
//
// An expectation that names a property is about all of them: one that it does not name must hold or not apply. One that
// names none is about the verdict and its class alone. A property that was not judged is never as expected.
func Compare(j Judgement, expect map[string]string) []Comparison {
	actual := map[string]string{ExpectVerdict: string(j.Verdict), ExpectClass: string(j.Class)}
	names := []string{ExpectVerdict}
	complete := false
	for _, r := range j.Results {
		actual[string(r.Property)] = string(r.Outcome)
		names = append(names, string(r.Property))
	}
	for _, name := range slices.Sorted(maps.Keys(expect)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		complete = complete || name != ExpectVerdict && name != ExpectClass
	}
	all := make([]Comparison, len(names))
	for i, name := range names {
		c := Comparison{Name: name, Expected: expect[name], Actual: actual[name]}
		switch {
		case c.Expected != "":
			c.Met = c.Actual != "" && slices.Contains(ExpectedOutcomes(c.Expected), c.Actual)
		case complete && name != ExpectVerdict:
			c.Met = c.Actual == string(Holds) || c.Actual == string(NotApplicable)
		default:
			c.Met = expect[ExpectVerdict] != string(Safe) || c.Actual != string(Violated)
		}
		all[i] = c
	}
	return all
}

// Unexpected is a sentence for each difference that [Compare] finds.
func Unexpected(j Judgement, expect map[string]string) []string {
	var wrong []string
	for _, c := range Compare(j, expect) {
		if !c.Met {
			wrong = append(wrong, c.Text())
		}
	}
	return wrong
}
