package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockchaos/lockchaos/internal/ledger"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// Options of a suite.
type Options struct {
	Scenarios  []Scenario // after Filter
	Command    []string   // chaos, to which "run --scenario …" is appended
	Args       []string   // of every run, such as --docker-image
	Backend    string
	Version    string // of chaos
	Filter     string // for the record
	Lock       string // that Args name instead of each scenario's, for the record
	Libraries  bool   // the scenarios are of libraries, for the record
	Seed       uint64
	Repeat     int // runs of each scenario; 0 is 1
	Jobs       int // runs at the same time; 0: one per processor
	Shard      Shard
	Budget     time.Duration // start no run later; 0: no limit
	Retry      int           // attempts with another seed if a run is inconclusive
	Limit      time.Duration // of one run, in addition to its scenario's duration; 0 is defaultLimit
	Out        string        // directory for everything
	Quarantine Quarantine
	InOrder    bool // start the runs in the order of Scenarios; else the longest first

	// Judged is called with a row whose run has ended and the directory of that run, and reports whether to keep the
	// directory also if the row is as expected. It may be called by several goroutines at once. nil: it is not.
	Judged func(Row, *rundir.Dir) (keep bool)
	// Missing says why a scenario cannot run here; "": it can. nil: all can.
	Missing func(Scenario) string
	// Watch is called when a row begins or ends, by one goroutine at a time. nil: it is not.
	Watch func(Progress)
	// Note is called with a text for people about a limitation of the suite; it may be called by several goroutines at
	// once. nil: it is not.
	Note func(string)

	newDir func(parent, prefix string) (*ledger.DataDir, error) // nil: ledger.NewOwnedDir
}

// defaultLimit is how long a run may take in addition to its scenario's duration: a start of many servers, healing,
// hard searches.
const defaultLimit = 3 * time.Minute

// RunsDir is the folder of the runs that are kept.
const RunsDir = "runs"

// ErrInterrupted reports that ctx ended before every row had run.
var ErrInterrupted = errors.New("the suite was interrupted")

// task is a row to make.
type task struct {
	scenario Scenario
	number   int
	order    int // of the row
}

// suiteRun is a suite in progress.
type suiteRun struct {
	Options
	deadline time.Time // zero: none
	unlocked sync.Once // the note that the file system has no locks

	mu      sync.Mutex // guards suite, running and written
	suite   Suite
	running []task
	written time.Time // when the progress was written last
}

// Run makes the rows of the options' shard and returns them. When ctx ends, runs in progress are interrupted, and the
// rows that did not run say so.
func Run(ctx context.Context, o Options) (Suite, error) {
	o.Repeat, o.Jobs = max(o.Repeat, 1), cmp.Or(o.Jobs, runtime.NumCPU())
	o.Limit = cmp.Or(o.Limit, defaultLimit)
	if o.newDir == nil {
		o.newDir = ledger.NewOwnedDir
	}
	if err := os.MkdirAll(filepath.Join(o.Out, RunsDir), 0o755); err != nil {
		return Suite{}, fmt.Errorf("creating the directory of the suite: %w", err)
	}
	if err := ledger.SweepOwned(ctx, filepath.Join(o.Out, RunsDir), newRun); err != nil && o.Note != nil {
		o.Note(fmt.Sprintf("removing what killed suites left in %s: %v", o.Out, err))
	}
	r := &suiteRun{Options: o, suite: Suite{
		Format: Format, Version: o.Version, Backend: o.Backend, Filter: o.Filter, Lock: o.Lock, Seed: o.Seed,
		Libraries: o.Libraries, Repeat: o.Repeat, Shards: []Shard{o.Shard}, Started: time.Now().UTC(),
		Notes: o.Quarantine.expired(time.Now()),
	}}
	if o.Budget > 0 {
		r.deadline = time.Now().Add(o.Budget)
	}
	tasks := r.tasks()
	r.suite.Rows = make([]Row, len(tasks))
	r.changed(func() {})
	var workers errgroup.Group
	workers.SetLimit(o.Jobs)
	if !o.InOrder {
		tasks = longestFirst(tasks)
	}
	for _, t := range tasks {
		workers.Go(func() error {
			r.changed(func() { r.running = append(r.running, t) })
			row := r.row(ctx, t)
			r.changed(func() {
				r.suite.Rows[t.order] = row
				r.running = slices.DeleteFunc(r.running, func(x task) bool { return x.order == t.order })
			})
			return nil
		})
	}
	_ = workers.Wait() // no row is an error
	r.suite.sortRows()
	r.suite.Finished = time.Now().UTC()
	if ctx.Err() != nil {
		return r.suite, ErrInterrupted
	}
	return r.suite, nil
}

// tasks are the rows of the shard, in order.
func (r *suiteRun) tasks() (tasks []task) {
	n := 0
	for _, s := range r.Scenarios {
		for number := range r.Repeat {
			if r.Shard.has(n) {
				tasks = append(tasks, task{s, number + 1, len(tasks)})
			}
			n++
		}
	}
	return tasks
}

// longestFirst sorts tasks so that the last to start are short, and no processor is left with a long one at the end.
func longestFirst(tasks []task) []task {
	weight := func(t task) time.Duration {
		return t.scenario.Duration * time.Duration(t.scenario.Workload.Defaults().Clients)
	}
	sorted := slices.Clone(tasks)
	slices.SortStableFunc(sorted, func(a, b task) int { return cmp.Compare(weight(b), weight(a)) })
	return sorted
}

// changed makes a change of what runs and what is done, reports it, and writes it from time to time, for chaos serve,
// and for Merge if the suite is killed. Without an error: the results are written at the end.
func (r *suiteRun) changed(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	now := time.Now()
	p := Progress{Total: len(r.suite.Rows), Updated: now.UTC(), Suite: r.suite}
	p.Suite.Rows = slices.DeleteFunc(slices.Clone(r.suite.Rows), func(r Row) bool { return r.Scenario == "" })
	for _, t := range r.running {
		p.Running = append(p.Running, t.scenario.Title())
	}
	if r.Watch != nil {
		r.Watch(p)
	}
	if first := len(p.Suite.Rows) == 0; first || now.Sub(r.written) >= progressEvery {
		if !first {
			r.written = now
		}
		_ = p.write(r.Out)
	}
}

// row makes a row, with as many attempts as the options allow.
func (r *suiteRun) row(ctx context.Context, t task) Row {
	s := t.scenario
	row := Row{
		Format: Format, Scenario: s.Title(), Number: t.number, Lock: s.LockText(), Seed: r.seed(t, 0), Outcome: Skipped,
		Expected: s.expected(), Quarantine: r.Quarantine.of(s.Title(), time.Now()),
	}
	if r.Missing != nil {
		if why := r.Missing(s); why != "" {
			row.Why = []string{why}
			return row
		}
	}
	start := time.Now()
	for attempt := 0; ; attempt++ {
		if attempt > 0 {
			row.Attempts = append(row.Attempts, Attempt{row.Seed, row.Why})
		}
		row.Seed = r.seed(t, attempt)
		row.Why = r.stopped(ctx)
		if row.Outcome = NotRun; row.Why != nil {
			break
		}
		dir := r.attempt(ctx, t, &row)
		if row.Outcome != Inconclusive || attempt >= r.Retry || r.stopped(ctx) != nil {
			row.Run = r.keep(dir, row)
			break
		}
		_ = dir.Remove()
	}
	row.Seconds = time.Since(start).Seconds()
	return row
}

// seed is the seed of an attempt: no two rows of a scenario share one.
func (r *suiteRun) seed(t task, attempt int) uint64 {
	return r.Seed + uint64(t.number-1) + uint64(attempt*r.Repeat)
}

// stopped says why no run may start; nil: one may.
func (r *suiteRun) stopped(ctx context.Context) []string {
	switch {
	case ctx.Err() != nil:
		return []string{"the suite was interrupted"}
	case !r.deadline.IsZero() && time.Now().After(r.deadline):
		return []string{fmt.Sprintf("the budget of %v was used up", r.Budget)}
	}
	return nil
}

// keep moves the run directory inside dir to the kept ones and returns its new path, or removes it if the row is as
// expected, unless Judged wants it, or was interrupted. A run that cannot be moved (full disk) stays where it is. dir
// may be nil.
func (r *suiteRun) keep(dir *ledger.DataDir, row Row) string {
	if dir == nil {
		return ""
	}
	run, err := rundir.Open(filepath.Join(dir.Path, rundir.Latest))
	keep := row.Outcome != AsExpected
	if err == nil && r.Judged != nil && row.Outcome != NotRun {
		keep = r.Judged(row, run) || keep
	}
	if !keep || row.Outcome == NotRun || err != nil {
		_ = dir.Remove()
		return ""
	}
	_ = os.Rename(filepath.Join(dir.Path, outputFile), run.File(outputFile))
	to := filepath.Join(r.Out, RunsDir, filepath.FromSlash(run.ID))
	err = os.MkdirAll(filepath.Dir(to), 0o755)
	if err == nil {
		err = os.Rename(run.Path, to)
	}
	if err == nil {
		_ = dir.Remove()
	} else {
		to = run.Path
		_ = dir.Keep()
	}
	kept, err := filepath.Rel(r.Out, to)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(kept)
}
