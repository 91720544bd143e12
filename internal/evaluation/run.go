package evaluation

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/clientcheck"
	"github.com/lockchaos/lockchaos/internal/evaluation/tally"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/reports"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Options of a test.
type Options struct {
	Lock     Lock
	Client   []clientcheck.Finding // the checks of its client; nil: none were made
	Unstated promise.Set           // that the check has seen, although the client does not state them
	Command  []string              // chaos, to which "run --scenario …" is appended
	Args     []string              // of every run, such as --docker-image
	Backend  string
	Version  string // of chaos
	Time     time.Duration
	Seed     uint64
	Jobs     int    // runs at the same time
	Out      string // directory for everything
	Baseline Baseline
	FailFast bool // end at the first finding of the lock itself that the baseline does not accept

	// Missing is the reason why a scenario cannot run here; "": it can.
	Missing func(suite.Scenario) string
	// Explore runs generated scenarios in simulation. nil: the lock cannot be simulated; they run on Backend.
	Explore ExploreFunc
	// Watch is called with the state of the test, by one goroutine at a time. nil: it is not called.
	Watch func(Progress)
	// Found is called with each new finding, by one goroutine at a time. nil: it is not called.
	Found func(Finding)
	// Note is called with texts for people. nil: it is not called.
	Note func(string)
}

// ExploreFunc explores in simulation, and shrinks the scenarios of findings, all within o.Time.
type ExploreFunc func(ctx context.Context, o explore.Options) (Explored, error)

// Explored is the result of an [ExploreFunc].
type Explored struct {
	explore.Report
	Shrunk []string // files with the shrunk scenarios of the findings, in their order; "": not shrunk
}

// Progress is the state of a test.
type Progress struct {
	Runs  tally.Runs
	Phase string // for people
}

// storyShare is the part of the time after which no story begins, so that some time is left for generated scenarios.
const storyShare = 0.7

// repeats is how often a scenario with a finding of the lock runs again, each time with another seed.
const repeats = 4

// generatedAtOnce is the number of generated scenarios that are drawn for each job before they run.
const generatedAtOnce = 2

// test is a test in progress.
type test struct {
	Options
	began time.Time

	mu     sync.Mutex
	tally  *tally.Tally
	report Report // without its result
	phase  string
	ran    map[string]suite.Scenario // once, by name; they may run again
}

// Run tests a lock. When ctx ends, the runs in progress are interrupted, and the report says so. With an error, the
// report has the runs before it.
func Run(ctx context.Context, o Options) (Report, error) {
	stories, unfit := tally.Plan(o.Lock)
	t := &test{Options: o, began: time.Now(), tally: tally.New(unfit), ran: map[string]suite.Scenario{},
		report: Report{Format: Format, Version: o.Version, Lock: o.Lock.Name, Promises: o.Lock.Can, Unstated: o.Unstated,
			Topologies: o.Lock.Kinds, Seed: o.Seed, Started: time.Now().UTC(), Client: o.Client}}
	var err error
	if !t.report.Untestable() {
		err = t.runs(ctx, stories)
	}
	t.report.Result = t.tally.Result
	t.report.Notes = o.Baseline.notes(t.report.Findings, t.began)
	t.report.Finished = time.Now().UTC()
	return t.report, err
}

// runs makes all runs and sums them up.
func (t *test) runs(ctx context.Context, stories []scenarios.Scenario) error {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	t.tally.Accept = func(f Finding) string { return t.Baseline.acceptance(f, t.began) }
	t.tally.Found = func(f Finding) {
		if t.Options.Found != nil {
			t.Options.Found(f)
		}
		if t.FailFast && f.Own && f.Accepted == "" {
			cancel()
		}
	}
	err := t.suite(limited, "stories", named(stories), t.Seed, 1, time.Duration(float64(t.Time)*storyShare))
	if err == nil {
		err = t.generated(limited)
	}
	t.report.Interrupted = ctx.Err() != nil
	t.tally.SumUp()
	if t.Lock.Command != nil {
		t.tally.AddNotStated(t.Lock.Can, t.Unstated, "\"can\" of the reply to init")
	}
	if limited.Err() != nil {
		return nil // that was the error
	}
	return err
}

// named converts stories for a suite.
func named(stories []scenarios.Scenario) (list []suite.Scenario) {
	for _, s := range stories {
		list = append(list, suite.Scenario{Arg: s.Name, Scenario: s})
	}
	return list
}

// suite runs each scenario that often, with seeds from first on, and starts none after budget.
func (t *test) suite(
	ctx context.Context, phase string, list []suite.Scenario, first uint64, times int, budget time.Duration,
) error {
	t.begin(phase)
	for _, s := range list {
		if times == 1 {
			t.ran[s.Title()] = s
		}
	}
	done, err := suite.Run(ctx, suite.Options{
		Scenarios: list, Command: t.Command, Args: t.Args, Backend: t.Backend, Version: t.Version, Lock: t.Lock.Name,
		Seed: first, Repeat: times, Jobs: t.Jobs, Budget: budget, Out: t.Out, InOrder: true, Missing: t.missing,
		Note: t.Note, Judged: t.judged,
	})
	for _, r := range done.Rows {
		t.row(r)
	}
	_ = os.Remove(filepath.Join(t.Out, suite.ProgressFile))
	return err
}

// begin begins a phase.
func (t *test) begin(phase string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phase = phase
	t.watch()
}

// left is the time that is left.
func (t *test) left() time.Duration { return t.Time - time.Since(t.began) }

// missing says why a scenario cannot run; "": it can. A generated one has to end before the test does.
func (t *test) missing(s suite.Scenario) string {
	if _, drawn := generator.SeedOf(s.Name); drawn && t.left() < tally.Takes(s.Scenario) {
		return tally.NoTime
	}
	if t.Missing == nil {
		return ""
	}
	return t.Missing(s)
}

// again runs the scenarios with findings of the lock again, each of them once, for at most half of the time that is
// left: a finding may depend on luck.
func (t *test) again(ctx context.Context) error {
	var list []suite.Scenario
	t.mu.Lock()
	for _, f := range t.tally.Own() {
		if s, ok := t.ran[f.Scenario]; ok {
			list = append(list, s)
			delete(t.ran, f.Scenario)
		}
	}
	t.mu.Unlock()
	if len(list) == 0 || t.left() <= 0 || ctx.Err() != nil {
		return nil
	}
	return t.suite(ctx, "findings again", list, t.Seed+1, repeats, t.left()/2)
}

// generated spends the rest of the time on generated scenarios, and on the repetition of findings.
func (t *test) generated(ctx context.Context) error {
	for first := t.Seed; ; first += uint64(generatedAtOnce * t.Jobs) {
		if err := t.again(ctx); err != nil || ctx.Err() != nil || t.left() <= 0 {
			return err
		}
		if t.Explore != nil {
			return t.simulated(ctx)
		}
		list, err := t.draw(first, generatedAtOnce*t.Jobs)
		if err != nil {
			return err
		}
		before := t.tally.Runs.All
		err = t.suite(ctx, "generated scenarios", list, t.Seed, 1, t.left())
		if err != nil || t.tally.Runs.All == before { // no time is left for any of them
			return err
		}
	}
}

// scenariosDir is the folder of the generated scenarios.
const scenariosDir = "scenarios"

// file is the file of a generated scenario.
func (t *test) file(scenario string) string {
	return filepath.Join(t.Out, scenariosDir, scenario+".yaml")
}

// write writes the file of a generated scenario.
func (t *test) write(scenario, yaml string) error {
	err := os.MkdirAll(filepath.Join(t.Out, scenariosDir), 0o755)
	if err == nil {
		err = os.WriteFile(t.file(scenario), []byte(yaml), 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing a generated scenario: %w", err)
	}
	return nil
}

// draw writes the scenarios of n seeds to files.
func (t *test) draw(first uint64, n int) (list []suite.Scenario, err error) {
	for seed := first; seed < first+uint64(n); seed++ {
		s, err := t.Lock.Draw(seed)
		if err == nil {
			err = t.write(s.Name, s.YAML())
		}
		if err != nil {
			return nil, err
		}
		list = append(list, suite.Scenario{Arg: t.file(s.Name), Scenario: s})
	}
	return list, nil
}

// simulated runs generated scenarios in simulation. The command that repeats a run names the file of its scenario,
// because the seed alone would draw another one for all topologies of the lock.
func (t *test) simulated(ctx context.Context) error {
	t.begin("generated scenarios, simulated")
	lock := t.Lock.Simulated()
	got, err := t.Explore(ctx, explore.Options{
		First: t.Seed, Seeds: math.MaxInt32, Time: t.left(), Jobs: t.Jobs, Out: filepath.Join(t.Out, suite.RunsDir),
		Draw: func(seed uint64) (explore.Drawn, error) {
			s, err := lock.Draw(seed)
			return explore.Drawn{Scenario: s.YAML(), Name: format.ShellWord(t.file(s.Name))}, err
		},
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.AddRuns(tally.Runs{All: got.Runs, Generated: got.Runs, Safe: got.Safe, Unsafe: got.Unsafe,
		Inconclusive: got.Inconclusive, Failed: got.Failed}, got.Grants)
	for i, f := range got.Findings {
		file := ""
		if i < len(got.Shrunk) {
			file = got.Shrunk[i]
		}
		if err := t.addExplored(f, file); err != nil {
			return err
		}
	}
	return nil
}

// row counts a row whose run left no directory, and removes the scenario of a generated row without a finding.
func (t *test) row(r suite.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, drawn := generator.SeedOf(r.Scenario)
	missed := r.Outcome == suite.NotRun || r.Outcome == suite.Skipped
	switch {
	case missed && (drawn || r.Seed != t.Seed): // another one ran
	case missed:
		why := strings.Join(r.Why, "; ")
		switch {
		case strings.HasPrefix(why, budgetWords):
			why = tally.NoTime
		case t.FailFast && len(t.tally.Own()) > 0:
			why = "the test ended at its first finding"
		}
		t.tally.Missed(r.Scenario, why)
	case r.Verdict == "":
		t.tally.Failed(r.Scenario, strings.Join(r.Why, "; "))
	}
	for i := range t.tally.Findings {
		f := &t.tally.Findings[i]
		if f.Scenario == r.Scenario && f.Seed == r.Seed && f.Run == "" {
			if f.Run = r.Run; drawn {
				f.File = t.relative(t.file(r.Scenario))
			}
		}
		drawn = drawn && f.Scenario != r.Scenario
	}
	if drawn && r.Outcome != suite.Inconclusive {
		_ = os.Remove(t.file(r.Scenario))
	}
}

// budgetWords begin the reason of a scenario for which no time was left; see package suite.
const budgetWords = "the budget of"

// judged adds a run, and reports whether to keep it.
func (t *test) judged(row suite.Row, dir *rundir.Dir) (keep bool) {
	run, err := reports.Load(dir)
	if err != nil || row.Verdict == "" {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	keep = t.tally.Add(run)
	if t.Lock.Command == nil || row.LockVersion != t.Version { // a program without a version has none
		t.report.LockVersion = cmp.Or(t.report.LockVersion, row.LockVersion)
	}
	t.watch()
	return keep
}

// watch passes on the progress; t.mu is locked.
func (t *test) watch() {
	if t.Watch != nil {
		t.Watch(Progress{t.tally.Runs, t.phase})
	}
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
func (t *test) addExplored(f explore.Finding, shrunk string) error {
	found := Finding{
		Property: f.Kind.Property, Class: f.Kind.Class, Sentence: f.Sentence, Scenario: f.Name, Seed: f.Seed, Runs: f.Runs,
		Repeat: f.Command, File: cmp.Or(t.relative(shrunk), t.relative(t.file(f.Name))),
	}
	if dir, err := rundir.Open(f.Dir); err == nil && f.Dir != "" {
		if run, err := reports.Load(dir); err == nil {
			found.Cause, found.Sentence, found.Advice = run.Story.Cause, run.Story.Sentence, run.Story.Advice
			found.Steps = run.Story.Steps
		}
		found.Run = t.relative(f.Dir)
	}
	t.tally.AddExplored(found, f.Scenario)
	return t.write(f.Name, f.Scenario)
}
