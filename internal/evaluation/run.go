package evaluation

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/clientcheck"
	"github.com/lockchaos/lockchaos/internal/evaluation/tally"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/reports"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Options of a test.
type Options struct {
	Lock     Lock
	Client   []clientcheck.Finding // the checks of its client; nil: none were made
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

	// Missing says why a scenario cannot run here; "": it can.
	Missing func(suite.Scenario) string
	// Explore runs generated scenarios in simulation for that time, and keeps runs below dir. nil: the lock cannot be
	// simulated, so they run as the stories do.
	Explore ExploreFunc
	// Watch is called with the state of the test, at most by one goroutine at a time. nil: it is not.
	Watch func(Progress)
	// Found is called with each new finding, as Watch is. nil: it is not.
	Found func(Finding)
	// Note is called with texts for people. nil: it is not.
	Note func(string)
}

// ExploreFunc runs the scenarios that are generated for the seeds from first on for that time, in simulation, and keeps
// an example run of each finding below dir.
type ExploreFunc func(ctx context.Context, first uint64, d time.Duration, dir string) (Explored, error)

// Explored is the result of an [ExploreFunc].
type Explored struct {
	explore.Report
	Shrunk []string // files with the shrunk scenarios of the findings, in their order; "": not shrunk
}

// Progress is how far a test is.
type Progress struct {
	Runs  tally.Runs
	Phase string // for people
}

// storyShare is the part of the time after which no story begins, so that generated scenarios run in any case.
const storyShare = 0.7

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
}

// Run tests a lock. When ctx ends, the runs in progress are interrupted, and the report says so.
func Run(ctx context.Context, o Options) (Report, error) {
	stories, unfit := tally.Plan(o.Lock)
	t := &test{Options: o, began: time.Now(), tally: tally.New(unfit),
		report: Report{Format: Format, Version: o.Version, Lock: o.Lock.Name, Promises: o.Lock.Can, Topologies: o.Lock.Kinds,
			Seed: o.Seed, Started: time.Now().UTC(), Client: o.Client, Notes: o.Baseline.expired(time.Now())}}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	t.tally.Accept = func(f Finding) string { return o.Baseline.of(f, t.began) }
	t.tally.Found = func(f Finding) {
		if o.Found != nil {
			o.Found(f)
		}
		if o.FailFast && f.Own && f.Accepted == "" {
			cancel()
		}
	}
	if !t.report.Untestable() {
		err := t.suite(limited, "stories", named(stories), time.Duration(float64(o.Time)*storyShare))
		if err == nil {
			err = t.generated(limited)
		}
		if t.report.Interrupted = ctx.Err() != nil; err != nil && limited.Err() == nil {
			return t.report, err
		}
	}
	t.tally.SumUp()
	if o.Lock.Command != nil {
		t.tally.AddNotStated(o.Lock.Can, "the names in \"can\" of the reply to init")
	}
	t.report.Result = t.tally.Result
	t.report.Finished = time.Now().UTC()
	return t.report, nil
}

// named are stories as a suite has them.
func named(stories []scenarios.Scenario) (list []suite.Scenario) {
	for _, s := range stories {
		list = append(list, suite.Scenario{Arg: s.Name, Scenario: s})
	}
	return list
}

// suite runs scenarios and starts none after budget.
func (t *test) suite(ctx context.Context, phase string, list []suite.Scenario, budget time.Duration) error {
	t.mu.Lock()
	t.phase = phase
	t.mu.Unlock()
	done, err := suite.Run(ctx, suite.Options{
		Scenarios: list, Command: t.Command, Args: t.Args, Backend: t.Backend, Version: t.Version, Lock: t.Lock.Name,
		Seed: t.Seed, Jobs: t.Jobs, Budget: budget, Out: t.Out, InOrder: true, Missing: t.Missing, Note: t.Note,
		Judged: t.judged,
	})
	for _, r := range done.Rows {
		t.row(r)
	}
	_ = os.Remove(filepath.Join(t.Out, suite.ProgressFile))
	return err
}

// generated spends the rest of the time on generated scenarios.
func (t *test) generated(ctx context.Context) error {
	left := func() time.Duration { return t.Time - time.Since(t.began) }
	if t.Explore != nil {
		return t.simulated(ctx, left())
	}
	for first := t.Seed; left() > 0 && ctx.Err() == nil; first += uint64(generatedAtOnce * t.Jobs) {
		list, err := t.draw(first, generatedAtOnce*t.Jobs)
		if err != nil {
			return err
		}
		if err := t.suite(ctx, "generated scenarios", list, left()); err != nil {
			return err
		}
	}
	return nil
}

// scenariosDir is the folder of the generated scenarios.
const scenariosDir = "scenarios"

// draw writes the scenarios of n seeds to files.
func (t *test) draw(first uint64, n int) (list []suite.Scenario, err error) {
	dir := filepath.Join(t.Out, scenariosDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of generated scenarios: %w", err)
	}
	for seed := first; seed < first+uint64(n); seed++ {
		s, err := t.Lock.Draw(seed)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, s.Name+".yaml")
		if err := os.WriteFile(file, []byte(s.YAML()), 0o644); err != nil {
			return nil, fmt.Errorf("writing a generated scenario: %w", err)
		}
		list = append(list, suite.Scenario{Arg: file, Scenario: s})
	}
	return list, nil
}

// simulated runs generated scenarios in simulation.
func (t *test) simulated(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t.mu.Lock()
	t.phase = "generated scenarios, simulated"
	t.watch()
	t.mu.Unlock()
	got, err := t.Explore(ctx, t.Seed, d, filepath.Join(t.Out, suite.RunsDir))
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
		t.addExplored(f, file)
	}
	return nil
}

// row counts a row whose run left no directory, and removes the scenario of a generated one that found nothing.
func (t *test) row(r suite.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, drawn := generator.SeedOf(r.Scenario)
	switch {
	case drawn && r.Outcome == suite.NotRun:
	case r.Outcome == suite.NotRun || r.Outcome == suite.Skipped:
		why := strings.Join(r.Why, "; ")
		switch {
		case strings.HasPrefix(why, budgetWords):
			why = tally.NoTime
		case t.FailFast && len(t.tally.Own()) > 0:
			why = "the test ended at its first finding"
		}
		t.tally.Missed(r.Scenario, why)
	case r.Verdict == "":
		t.tally.Runs.All++
		t.tally.Runs.Failed++
		t.report.Notes = append(t.report.Notes, fmt.Sprintf("scenario %s: %s", r.Scenario, strings.Join(r.Why, "; ")))
	}
	file := filepath.ToSlash(filepath.Join(scenariosDir, r.Scenario+".yaml"))
	for i := range t.tally.Findings {
		f := &t.tally.Findings[i]
		if f.Scenarios[0] == r.Scenario && f.Run == "" {
			f.Run, drawn = r.Run, false
		}
	}
	if drawn && r.Outcome != suite.Inconclusive {
		_ = os.Remove(filepath.Join(t.Out, file))
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
	t.report.LockVersion = cmp.Or(t.report.LockVersion, row.LockVersion)
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
func (t *test) addExplored(f explore.Finding, shrunk string) {
	found := Finding{
		Property: f.Kind.Property, Class: f.Kind.Class, Sentence: f.Sentence, Scenarios: []string{generator.Name(f.Seed)},
		Seed: f.Seed, Runs: f.Runs,
	}
	if dir, err := rundir.Open(f.Dir); err == nil && f.Dir != "" {
		if run, err := reports.Load(dir); err == nil {
			found.Cause, found.Sentence, found.Advice = run.Story.Cause, run.Story.Sentence, run.Story.Advice
			found.Steps, found.Repeat = run.Story.Steps, run.Manifest.Repeat
		}
		found.Run, found.File = t.relative(f.Dir), t.relative(shrunk)
	}
	t.tally.AddExplored(found, f.Scenario)
}
