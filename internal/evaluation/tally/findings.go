package tally

import (
	"maps"
	"slices"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/reports/advice"
	"github.com/lockchaos/lockchaos/reports/cause"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/overlap"
	"github.com/lockchaos/lockchaos/scenarios"
)

// sum has the outcomes of one property in all runs.
type sum struct {
	held, violated, undecided int              // numbers of runs
	counts                    map[string]int64 // of the runs in which it held
	why                       string           // the reason why it did not apply
}

// sum is the sum of a property.
func (t *Tally) sum(p checker.Property) *sum {
	s := t.seen[p]
	if s == nil {
		s = &sum{counts: map[string]int64{}}
		t.seen[p] = s
	}
	return s
}

// add adds runs in which the property held.
func (s *sum) add(runs int, counts map[string]int64) {
	s.held += runs
	for name, n := range counts { // order does not matter
		s.counts[name] += n
	}
}

// Add counts a judged run and adds its findings. It reports whether a finding has this run as its example.
func (t *Tally) Add(run *evidence.Run) (example bool) {
	runs, name := &t.Runs, run.Manifest.Scenario
	runs.All++
	t.runsOf[name]++
	if _, drawn := generator.SeedOf(name); drawn {
		runs.Generated++
	}
	switch run.Judgement.Verdict {
	case checker.Safe:
		runs.Safe++
	case checker.Unsafe:
		runs.Unsafe++
	case checker.Inconclusive:
		runs.Inconclusive++
		t.undecided("inconclusive", name, run.Judgement.Sentence)
	default:
		runs.Failed++
		t.undecided("failed", name, run.Judgement.Sentence)
	}
	for _, r := range run.Judgement.Results {
		t.addResult(r)
	}
	for _, f := range run.Faults {
		if len(f.Effects) > 0 && !f.Unplanned {
			t.faults[f.Name]++
		}
	}
	for _, f := range findingsOf(run) {
		example = t.addFinding(f) || example
		if f.all {
			t.markBroken(run.Judgement)
		}
	}
	return example
}

// markBroken marks each violated property as broken by the lock itself.
func (t *Tally) markBroken(j checker.Judgement) {
	for _, r := range j.Results {
		if r.Outcome == checker.Violated {
			t.broken[r.Property] = true
		}
	}
}

func (t *Tally) addResult(r checker.Result) {
	switch s := t.sum(r.Property); r.Outcome {
	case checker.Holds:
		s.add(1, r.Counts)
	case checker.Violated:
		s.violated++
	case checker.Undecided:
		s.undecided++
	case checker.NotApplicable:
		s.why = r.Summary
	}
}

// outlivesLease reports whether a client continued after its lease had ended, which no lease prevents. On a busy
// machine that happens without a fault, too.
func (f Finding) outlivesLease() bool {
	return f.Class == checker.OutlivedLease && (!cause.Known(f.Cause) ||
		slices.Contains([]string{"outlived-lease", "stalled-holder", "cut-off-holder"}, f.Cause))
}

// overlaps reports whether two owners at the same time violate a property.
func overlaps(p checker.Property) bool {
	return slices.Contains([]checker.Property{
		"", checker.Exclusion, checker.ReadersWriter, checker.Permits, checker.Damage, checker.Linearizable,
	}, p)
}

// findingsOf returns the findings of an unsafe run: the cause in its report and, if any lock of this kind has that one,
// each other violated property that such a lock would have kept.
func findingsOf(run *evidence.Run) (all []Finding) {
	if run.Judgement.Verdict != checker.Unsafe {
		return nil
	}
	first := Finding{
		Cause: run.Story.Cause, Class: run.Judgement.Class, Sentence: run.Story.Sentence, Advice: run.Story.Advice,
		Steps: run.Story.Steps, Scenario: run.Manifest.Scenario, Seed: run.Manifest.Seed,
		Repeat: run.Manifest.Repeat, Runs: 1, weight: weight(run.Manifest.YAML),
		in: map[runID]bool{{run.Manifest.Scenario, run.Manifest.Seed}: true},
	}
	if run.Worst != nil {
		first.Property = run.PropertyOf(run.Worst)
	}
	scenario, broken := unexpected(run)
	if fault, why := generator.NotSurvived(scenario, run.Manifest.Can); fault != "" {
		broken, first.Because = nil, "fault "+fault+": "+why
	}
	first.Own = slices.Contains(broken, "") || slices.Contains(broken, first.Property)
	if first.outlivesLease() {
		first.Own, broken = false, slices.DeleteFunc(broken, overlaps)
	}
	all = append(all, first)
	if first.Own {
		all[0].all = true
		return all
	}
	for _, p := range broken {
		r := run.Judgement.Result(p)
		if len(r.Violations) == 0 {
			continue
		}
		v, f := &r.Violations[0], first
		c := cause.Find(run, v, p, overlap.Of(run, v))
		f.Own, f.Property, f.Class, f.Sentence, f.Steps = true, p, v.Class, v.Text, nil
		if f.Cause, f.Advice = "", nil; c != nil && c.Name != first.Cause { // it explains the other violation
			f.Cause, f.Advice = c.Name, c.Advice()
		}
		if !slices.ContainsFunc(all, f.Same) {
			all = append(all, f)
		}
	}
	return all
}

// unexpected returns the scenario of a run, and the violated properties that the scenario expects any lock with these
// promises to keep; "" is one of them if it does not expect the verdict or its class.
func unexpected(run *evidence.Run) (s scenarios.Scenario, all []checker.Property) {
	s, err := scenarios.Parse([]byte(run.Manifest.YAML))
	if err != nil {
		return s, []checker.Property{""} // the manifest is this program's own
	}
	// The text of a story may be about this lock.
	if original, err := scenarios.Load(run.Manifest.Scenario); err == nil {
		s.Expect = original.ExpectOfAnotherLock()
	}
	m := rundir.Manifest{Can: run.Manifest.Can}
	m.SetExpected(s)
	for _, c := range expect.Compare(run.Judgement, m.Expectation()) {
		switch p := checker.Property(c.Name); {
		case c.Met:
		case c.Name == expect.Verdict || c.Name == expect.Class:
			all = append(all, "")
		case c.Actual == string(checker.Violated) && p != checker.Exercised:
			all = append(all, p)
		}
	}
	return s, all
}

// weight is larger for a scenario that is harder to understand.
func weight(yaml string) int {
	s, err := scenarios.Parse([]byte(yaml))
	if err != nil {
		return 0
	}
	w := s.Workload.Defaults()
	return len(s.Faults)*10 + w.Clients + w.Keys*2 + len(s.Options)*2
}

// addFinding adds a finding to the ones with the same cause, and reports whether its run became their example.
func (t *Tally) addFinding(f Finding) (example bool) {
	f.Cause = f.ID()
	if f.Own {
		t.broken[f.Property] = true
		if len(f.Advice) == 0 {
			f.Advice = advice.For(f.Property)
		}
	}
	i := slices.IndexFunc(t.Findings, func(old Finding) bool { return old.Same(f) })
	if i < 0 {
		f.Accepted = t.accepted(f)
		t.Findings = append(t.Findings, f)
		if t.Found != nil {
			t.Found(f)
		}
		return true
	}
	old := &t.Findings[i]
	if example = f.weight < old.weight; example {
		f.Accepted = t.accepted(f)
		f, *old = *old, f
	}
	old.addRuns(f)
	return example
}

func (t *Tally) accepted(f Finding) string {
	if t.Accept == nil {
		return ""
	}
	return t.Accept(f)
}

// addRuns adds the runs of another finding of the same cause.
func (f *Finding) addRuns(o Finding) {
	in := map[runID]bool{}
	maps.Copy(in, f.in)
	maps.Copy(in, o.in)
	f.in, f.explored = in, max(f.explored, o.explored) // several findings of the same runs
	f.Runs = len(f.in) + f.explored
}

// Same reports whether two findings have the same cause. Where the cause is not known, the property stands for it.
func (f Finding) Same(o Finding) bool {
	return f.Own == o.Own && f.ID() == o.ID() && f.Class == o.Class
}

// AddExplored adds a finding of an exploration, whose runs are counted already, with the text of its scenario.
func (t *Tally) AddExplored(f Finding, yaml string) {
	f.Own = !f.outlivesLease()
	f.explored, f.weight = f.Runs, weight(yaml)
	t.addFinding(f)
}
