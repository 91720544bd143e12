package tally

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/promise"
)

// SumUp completes the result after the last run.
func (t *Tally) SumUp() {
	r := &t.Result
	r.mergeCommon()
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Of, f.Seen = r.Runs.All, t.seenOf(*f)
		slices.SortStableFunc(f.Advice, func(a, b Advice) int { return First(!a.Measured, !b.Measured) })
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(First(a.Own, b.Own), First(a.Accepted == "", b.Accepted == ""), cmp.Compare(b.Runs, a.Runs))
	})
	r.Conditions = t.conditions()
	for _, p := range checker.Catalog() {
		t.sumUpProperty(p)
	}
	for _, why := range slices.Sorted(maps.Keys(t.missed)) {
		r.NotTested = append(r.NotTested, missedScenarios(why, t.missed[why]))
	}
	slices.SortStableFunc(r.NotTested, func(a, b NotTested) int { return First(a.Needs != "", b.Needs != "") })
	for _, x := range t.idle {
		r.NotTested = slices.Insert(r.NotTested, 0, NotTested{
			Subject: format.Count(x.runs, x.how+" run") + ": " + someOf(x.scenarios), Why: "the first one: " + x.why})
	}
}

// group is the name of a scenario in [Seen].
func (t *Tally) group(scenario string) string {
	if _, drawn := generator.SeedOf(scenario); drawn && t.runsOf[scenario] <= 1 {
		return Generated
	}
	return scenario
}

// seenOf counts the runs that show a finding by scenario: its example's first, then by frequency.
func (t *Tally) seenOf(f Finding) (all []Seen) {
	of := map[string]int{}
	for scenario, n := range t.runsOf { // order does not matter
		of[t.group(scenario)] += n
	}
	of[Generated] += t.explored
	runs := map[string]int{}
	for id := range f.in {
		runs[t.group(id.scenario)]++
	}
	if f.explored > 0 {
		runs[Generated] += f.explored
	}
	for name, n := range runs {
		all = append(all, Seen{name, n, of[name]})
	}
	example := t.group(f.Scenario)
	slices.SortFunc(all, func(a, b Seen) int {
		return cmp.Or(First(a.Scenario == example, b.Scenario == example), cmp.Compare(b.Runs, a.Runs),
			cmp.Compare(a.Scenario, b.Scenario))
	})
	return all
}

// AddNotStated adds the promises that a lock does not state to the untested parts, the shown ones first; needs names
// the place to state them.
func (r *Result) AddNotStated(can, shown promise.Set, needs string) {
	var first []NotTested
	for _, name := range shown.Names() {
		first = append(first, NotTested{Subject: "promise " + name, Needs: fmt.Sprintf("%q in %s", name, needs),
			Why: "the lock keeps it, but does not state it, so it is not judged"})
	}
	r.NotTested = append(first, r.NotTested...)
	if names := notStated(can | shown); len(names) > 0 {
		r.NotTested = append(r.NotTested, NotTested{
			Subject: format.Count(len(names), "promise") + " that the lock does not state: " + strings.Join(names, ", "),
			Why:     "a promise that is not stated is not judged", Needs: needs})
	}
}

// mergeCommon adds each finding that any lock of this kind has to a finding of the lock itself with the same cause: the
// lock has it without such faults, too.
func (r *Result) mergeCommon() {
	own, common := slices.Clone(r.Findings), []Finding(nil)
	own = slices.DeleteFunc(own, func(f Finding) bool { return !f.Own })
	for _, c := range r.Common() {
		as := c
		as.Own = true
		if i := slices.IndexFunc(own, as.Same); i >= 0 {
			own[i].addRuns(c)
		} else {
			common = append(common, c)
		}
	}
	r.Findings = append(own, common...)
}

// conditions are the numbers of grants and of faults in all runs.
func (t *Tally) conditions() string {
	all := map[string]int64{}
	if s := t.seen[checker.Exercised]; s != nil {
		all["grants"], all["contended_grants"] = s.counts["grants"], s.counts["contended_grants"]
	}
	maps.Copy(all, t.faults)
	return countsText(all)
}

// First orders true before false.
func First(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// sumUpProperty adds a property to the ones that held, or to the ones that were not tested.
func (t *Tally) sumUpProperty(p checker.Spec) {
	r, s := &t.Result, t.seen[p.Name]
	switch {
	case s == nil || t.broken[p.Name] || p.Name == checker.Exercised:
	case s.held > 0:
		r.Held = append(r.Held, Held{Property: p.Name, Runs: s.held, Violated: s.violated, Counts: s.counts,
			Text: countsText(s.counts)})
	case s.violated > 0:
	case s.undecided > 0:
		r.NotTested = append(r.NotTested, NotTested{Subject: "property " + string(p.Name), Why: "no run could decide it"})
	case s.why != "":
		r.NotTested = append(r.NotTested, NotTested{Subject: "property " + string(p.Name), Why: s.why})
	}
}

// countsText lists counts, the largest first, without zeros.
func countsText(counts map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		if n := counts[name]; n > 0 {
			parts = append(parts, format.Number(n)+" "+strings.ReplaceAll(name, "_", " "))
		}
	}
	return strings.Join(parts, ", ")
}

// namedAtMost is the number of scenarios that a line names.
const namedAtMost = 6

// someOf lists the first scenarios.
func someOf(names []string) string {
	shown := names[:min(len(names), namedAtMost)]
	text := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// missedScenarios is the line about scenarios that did not run for one reason.
func missedScenarios(why string, names []string) NotTested {
	n := NotTested{Subject: format.Count(len(names), "scenario") + ": " + someOf(names), Why: why}
	switch kind, isTopology := strings.CutPrefix(why, topologyWord); {
	case isTopology:
		n.Needs = "--topology " + kind
	case why == NoTime:
		n.Needs = "a longer --time"
	}
	return n
}

// NoTime is the reason of a scenario for which no time was left.
const NoTime = "no time was left"
