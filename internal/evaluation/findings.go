package evaluation

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/reports"
	"github.com/lockchaos/lockchaos/reports/cause"
	"github.com/lockchaos/lockchaos/reports/overlap"
	"github.com/lockchaos/lockchaos/scenarios"
)

// load reads a run directory.
func load(dir *rundir.Dir) (*reports.Run, error) { return reports.Load(dir) }

// sum is what all runs say about one property.
type sum struct {
	held, violated, undecided int              // numbers of runs
	counts                    map[string]int64 // of the runs in which it held
	why                       string           // it did not apply
}

// sum is the sum of a property; t.mu is locked.
func (t *test) sum(p checker.Property) *sum {
	s := t.seen[string(p)]
	if s == nil {
		s = &sum{counts: map[string]int64{}}
		t.seen[string(p)] = s
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

// add counts a run and adds its findings. It reports whether a finding has this run as its example. t.mu is locked.
func (t *test) add(row suite.Row, run *reports.Run) (example bool) {
	_, drawn := generator.SeedOf(row.Scenario)
	t.report.LockVersion = cmp.Or(t.report.LockVersion, row.LockVersion)
	runs := &t.report.Runs
	runs.All++
	t.of[row.Scenario]++
	if drawn {
		runs.Generated++
	}
	switch row.Verdict {
	case checker.Safe:
		runs.Safe++
	case checker.Unsafe:
		runs.Unsafe++
	case checker.Inconclusive:
		runs.Inconclusive++
	default:
		runs.Failed++
	}
	for _, r := range run.Judgement.Results {
		t.addResult(r)
	}
	for _, f := range run.Faults {
		if len(f.Effects) > 0 && !f.Unplanned {
			t.faults[f.Name]++
		}
	}
	for _, f := range t.findingsOf(row, run) {
		example = t.addFinding(f) || example
	}
	return example
}

func (t *test) addResult(r checker.Result) {
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

// findingsOf are the findings of an unsafe run: the cause that its report explains; and where that is what any lock of
// this kind has, every other property that such a lock would have kept.
func (t *test) findingsOf(row suite.Row, run *reports.Run) (all []Finding) {
	if run.Judgement.Verdict != checker.Unsafe {
		return nil
	}
	first := Finding{
		Own: true, Cause: run.Story.Cause, Class: run.Judgement.Class, Sentence: run.Story.Sentence, Advice: run.Story.Advice,
		Steps: run.Story.Steps, Scenarios: []string{row.Scenario}, Seed: row.Seed, Repeat: row.Repeat, Runs: 1,
		weight: weight(run.Manifest.YAML),
	}
	if run.Worst != nil {
		first.Property = run.PropertyOf(run.Worst)
	}
	scenario, unexpected := t.unexpected(row.Scenario, run)
	if fault, why := generator.Beyond(scenario, run.Manifest.Can); fault != "" {
		unexpected, first.Because = nil, "fault "+fault+": "+why
	}
	first.Own = len(unexpected) > 0 && (slices.Contains(unexpected, "") || slices.Contains(unexpected, first.Property))
	all = append(all, first)
	if first.Own {
		return all
	}
	for _, p := range unexpected {
		r := run.Judgement.Result(p)
		if len(r.Violations) == 0 {
			continue
		}
		v, f := &r.Violations[0], first
		c := cause.Find(run, v, p, overlap.Of(run, v))
		f.Own, f.Property, f.Class, f.Sentence, f.Steps = true, p, v.Class, v.Text, nil
		if f.Cause, f.Advice = "", nil; c != nil {
			f.Cause, f.Advice = c.Name, c.Advice()
		}
		if !slices.ContainsFunc(all, f.same) {
			all = append(all, f)
		}
	}
	return all
}

// unexpected is the scenario of a run, and the properties that were violated in a run although the scenario expects any lock with these promises
// to keep them; "" is one of them if it does not expect the verdict or its class.
func (t *test) unexpected(name string, run *reports.Run) (s scenarios.Scenario, all []checker.Property) {
	s, err := scenarios.Parse([]byte(run.Manifest.YAML))
	if err != nil {
		return s, []checker.Property{""} // the manifest is this program's own
	}
	if original, err := scenarios.Load(name); err == nil { // it is a story: its text may be about this lock
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

// addFinding adds a finding to those of the same cause, and reports whether its run became their example. t.mu is
// locked.
func (t *test) addFinding(f Finding) (example bool) {
	i := slices.IndexFunc(t.report.Findings, func(old Finding) bool { return old.same(f) })
	if i < 0 {
		f.Accepted = t.Baseline.of(f, t.began)
		t.report.Findings = append(t.report.Findings, f)
		if t.Found != nil {
			t.Found(f)
		}
		if t.FailFast && f.Own && f.Accepted == "" {
			t.end()
		}
		return true
	}
	old := &t.report.Findings[i]
	if example = f.weight < old.weight; example {
		f.Accepted = t.Baseline.of(f, t.began)
		f, *old = *old, f
	}
	old.seenIn(f)
	return example
}

// seenIn adds the runs and scenarios of another finding of the same cause.
func (f *Finding) seenIn(o Finding) {
	f.Runs += o.Runs - min(f.explored, o.explored) // several findings of the same runs
	f.explored = max(f.explored, o.explored)
	for _, name := range o.Scenarios {
		if !slices.Contains(f.Scenarios, name) {
			f.Scenarios = append(f.Scenarios, name)
		}
	}
}

// same reports whether two findings have the same cause. Where the cause is not known, the property stands for it.
func (f Finding) same(o Finding) bool {
	return f.Own == o.Own && f.Cause == o.Cause && f.Class == o.Class && (cause.Known(f.Cause) || f.Property == o.Property)
}

// relative is a path relative to the directory of the test, with slashes; "" for "".
func (t *test) relative(file string) string {
	to, err := filepath.Rel(t.Out, file)
	if file == "" || err != nil {
		return ""
	}
	return filepath.ToSlash(to)
}

// addExplored adds a finding of an exploration, and the file with its shrunk scenario.
func (t *test) addExplored(f explore.Finding, shrunk string) {
	found := Finding{
		Own: true, Property: f.Kind.Property, Class: f.Kind.Class, Sentence: f.Sentence, Scenarios: []string{generator.Name(f.Seed)},
		Seed: f.Seed, Runs: f.Runs, explored: f.Runs, weight: weight(f.Scenario),
	}
	if dir, err := rundir.Open(f.Dir); err == nil && f.Dir != "" {
		if run, err := load(dir); err == nil {
			found.Cause, found.Sentence, found.Advice = run.Story.Cause, run.Story.Sentence, run.Story.Advice
			found.Steps, found.Repeat = run.Story.Steps, run.Manifest.Repeat
		}
		found.Run, found.File = t.relative(f.Dir), t.relative(shrunk)
	}
	t.addFinding(found)
}
