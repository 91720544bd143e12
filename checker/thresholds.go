package checker

import (
	"cmp"
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/stats"
)

// Comparison is the expected and the actual outcome of a property, the expected and the actual verdict or class, or a
// threshold and the number that was measured.
type Comparison struct {
	Name     string `json:"name"`     // a property, "verdict", "class" or a metric
	Expected string `json:"expected"` // empty: the expectation does not name it
	Actual   string `json:"actual"`   // empty: not judged; of the class: no violation has one
	Met      bool   `json:"met"`
}

// ThresholdsMet reports whether every threshold is met.
func (j Judgement) ThresholdsMet() bool {
	return !slices.ContainsFunc(j.Thresholds, func(c Comparison) bool { return !c.Met })
}

// testThresholds compares a history with the thresholds of o.
func testThresholds(h *history.History, o given.Options) []Comparison {
	if len(o.Thresholds) == 0 {
		return nil
	}
	var held []stats.Held
	for _, x := range findHolds(h, o) {
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
