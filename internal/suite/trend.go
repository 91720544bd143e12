package suite

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// maxNights is how many nights the page shows and the rates are about.
const maxNights = 30

// Trend is one scenario over the last nights.
type Trend struct {
	Scenario string  `json:"scenario"`
	Backend  string  `json:"backend"`
	Runs     int     `json:"runs"`    // with a verdict on the lock
	Differs  int     `json:"differs"` // of those
	Low      float64 `json:"low"`     // Wilson interval of the rate, 95 %
	High     float64 `json:"high"`
	Alert    string  `json:"alert,omitempty"` // a verdict that changed and was reproduced
}

// Trends are one for each scenario and backend, alerts first.
func (h History) Trends() []Trend {
	var known []Record
	for _, n := range h.nights() {
		for _, r := range n.records {
			if r.Outcome == AsExpected || r.Outcome == Differs { // else nothing is known of the lock
				known = append(known, r)
			}
		}
	}
	order, runs := grouped(known, func(r Record) Row { return r.Row })
	var trends []Trend
	for _, l := range order {
		t := Trend{Scenario: l.scenario, Backend: l.backend, Runs: len(runs[l]), Alert: alert(runs[l])}
		for _, r := range runs[l] {
			if r.Outcome == Differs {
				t.Differs++
			}
		}
		t.Low, t.High = wilson(t.Differs, t.Runs)
		trends = append(trends, t)
	}
	slices.SortStableFunc(trends, func(a, b Trend) int {
		return cmp.Or(cmp.Compare(min(len(b.Alert), 1), min(len(a.Alert), 1)), cmp.Compare(a.Scenario, b.Scenario),
			cmp.Compare(a.Backend, b.Backend))
	})
	return trends
}

// alert says that a verdict has changed: the last two runs, with different seeds, both differ from the expectation in
// the same way, and an earlier run did not. A single run is no alert, because it may be a rare schedule.
func alert(runs []Record) string {
	last := len(runs) - 1
	if last < 2 || runs[last].Outcome != Differs {
		return ""
	}
	verdict, first := runs[last].Verdict, last
	seeds := map[uint64]bool{}
	for first >= 0 && runs[first].Outcome == Differs && runs[first].Verdict == verdict {
		seeds[runs[first].Seed] = true
		first--
	}
	if first < 0 || len(seeds) < 2 {
		return ""
	}
	now := string(verdict)
	if verdict == runs[first].Verdict { // a property differs
		now += ", but not as expected,"
	}
	text := fmt.Sprintf("%s since %s (%d seeds), %s before; expected %s", now,
		runs[first+1].Night.UTC().Format(time.DateOnly), len(seeds), runs[first].Verdict, runs[last].Expected)
	return strings.TrimSuffix(text+": "+runs[last].why(), ": ")
}

// wilson is the interval in which a rate is with 95 % confidence if k of n runs show it (Wilson 1927).
func wilson(k, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959964
	p, m := float64(k)/float64(n), float64(n)
	center := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, center-half), min(1, center+half)
}

// Changes are how the scenarios of the last suite with each backend differ from the suite before in which they were.
func (h History) Changes() []Change {
	last := h.lastWith()
	known := slices.DeleteFunc(slices.Clone(h.Records), func(r Record) bool { return r.Row.untested() })
	order, runs := grouped(known, func(r Record) Row { return r.Row })
	var a, b Suite
	also := map[name][]string{}
	for _, n := range order {
		before, after := lastTwo(runs[n])
		if len(before) == 0 || !after[0].Night.Equal(last[n.backend]) {
			continue
		}
		a.Rows, b.Rows = append(a.Rows, recordRows(before)...), append(b.Rows, recordRows(after)...)
		also[n] = tested(before[0], after[0])
	}
	all := slices.DeleteFunc(Diff(a, b), func(c Change) bool { return c.Before == c.After })
	for i, c := range all {
		all[i].Why = append(slices.Clone(c.Why), also[name{c.Scenario, c.Backend}]...)
	}
	return all
}

// lastTwo are the records of the last suite and of the one before.
func lastTwo(runs []Record) (before, after []Record) {
	sorted := slices.Clone(runs)
	slices.SortStableFunc(sorted, func(a, b Record) int { return a.Night.Compare(b.Night) })
	for _, r := range sorted {
		if len(after) > 0 && !after[0].Night.Equal(r.Night) {
			before, after = after, nil
		}
		after = append(after, r)
	}
	return before, after
}

// tested are the differences between two suites besides the outcome: another lock, program or expectation.
func tested(before, after Record) (differences []string) {
	lock := func(r Record) string {
		if r.LockVersion == r.Version { // a lock of this program
			return r.Lock
		}
		return strings.TrimSpace(r.Lock + " " + r.LockVersion)
	}
	for _, d := range []struct{ name, before, after string }{
		{"lock", lock(before), lock(after)}, {"chaos", before.Version, after.Version},
		{"expected", before.Expected, after.Expected},
	} {
		if d.before != d.after {
			differences = append(differences, fmt.Sprintf("%s: %s → %s", d.name, cmp.Or(d.before, "unknown"),
				cmp.Or(d.after, "unknown")))
		}
	}
	return differences
}
