package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/stats"
)

// Keys of an expectation besides the names of properties.
const (
	ExpectVerdict = "verdict" // safe, unsafe or inconclusive
	ExpectClass   = "class"   // of the verdict
)

// OutcomeWord separates the outcomes that an expectation allows: "holds or violated".
const OutcomeWord = " or "

// ExpectedOutcomes are the outcomes that an expectation allows.
func ExpectedOutcomes(expected string) []string { return strings.Split(expected, OutcomeWord) }

// Comparison is the expected and the actual outcome of a property, the expected and the actual verdict or class, or a
// threshold and the number that was measured.
type Comparison struct {
	Name     string `json:"name"`     // a property, "verdict", "class" or a metric
	Expected string `json:"expected"` // empty: the expectation does not name it
	Actual   string `json:"actual"`   // empty: not judged; of the class: no violation has one
	Met      bool   `json:"met"`
}

// Text is the outcome beside the expected one.
func (c Comparison) Text() string {
	actual := cmp.Or(c.Actual, "not judged")
	switch {
	case c.Name == ExpectClass && c.Actual == "":
		return fmt.Sprintf("%s: expected %s, got none", c.Name, c.Expected)
	case c.Expected != "":
		return fmt.Sprintf("%s: expected %s, got %s", c.Name, c.Expected, actual)
	case !c.Met:
		return fmt.Sprintf("%s: %s, which the scenario does not expect", c.Name, actual)
	}
	return c.Name + ": " + actual
}

// Compare compares a judgement with an expectation by property name, "verdict" or "class": the verdict first, then
// every property that was judged or is expected, then the thresholds.
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
	return append(all, j.Thresholds...)
}

// ThresholdsMet reports whether every threshold is met.
func (j Judgement) ThresholdsMet() bool {
	return !slices.ContainsFunc(j.Thresholds, func(c Comparison) bool { return !c.Met })
}

// testThresholds compares a history with the thresholds of o.
func testThresholds(h *history.History, o Options) []Comparison {
	if len(o.Thresholds) == 0 {
		return nil
	}
	var held []stats.Held
	for _, x := range FindHolds(h, o) {
		until := max(x.From, min(x.Until, h.End))
		held = append(held, stats.Held{Key: x.Key, Interval: stats.Interval{From: x.From, Until: until}})
	}
	all := make([]Comparison, len(o.Thresholds))
	for i, text := range o.Thresholds {
		t, err := stats.ParseThreshold(text)
		if err != nil {
			all[i] = Comparison{Name: "threshold", Expected: text, Actual: err.Error()}
			continue
		}
		all[i] = Comparison{Name: t.Metric, Expected: t.Limits()}
		actual, met := t.Test(h, held)
		all[i].Actual, all[i].Met = cmp.Or(actual, "not measured"), met
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
