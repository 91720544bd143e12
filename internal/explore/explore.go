package explore

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Options of an exploration.
type Options struct {
	Scenario string // YAML
	// Draw makes the scenario of each seed; its error leaves the seed out. nil: all seeds have Scenario. With Draw,
	// Scenario is a text that only identifies the exploration, for Corpus.
	Draw         func(seed uint64) (Drawn, error)
	Name         string        // of the scenario, for the command that repeats a run
	First        uint64        // seed of the first run; the others follow
	Seeds        int           // number of runs, at least 1
	Step         uint64        // from one seed to the next; 0: 1
	Corpus       *Corpus       // shared with other shards; nil: none
	Shard        ShardRecord   // with Corpus: First, Index and Of of this shard, the rest as it was left
	Time         time.Duration // no run starts later; 0: no limit
	Jobs         int           // runs in parallel; 0: one per processor
	Out          string        // directory for the runs that are kept; "": keep none
	Repeat       int           // make each run so many times and compare; 0 and 1: once
	NoVariations bool          // run every seed once, and deliver messages by latency alone

	// Watch is called after each run. nil: it is not.
	Watch func(Report)
}

// Report is the result of an exploration, so far.
type Report struct {
	Runs         int            `json:"runs"`
	Safe         int            `json:"safe"`
	Unsafe       int            `json:"unsafe"`
	Inconclusive int            `json:"inconclusive"`
	Failed       int            `json:"failed"`
	Varied       int            `json:"varied"`     // variations of runs that reached a new state
	Priorities   int            `json:"priorities"` // runs whose messages were delivered by priorities
	Virtual      time.Duration  `json:"virtual_ns"`
	Took         time.Duration  `json:"took_ns"`
	CPU          time.Duration  `json:"cpu_ns"` // processor time of the workers
	Commands     int64          `json:"commands"`
	Grants       int64          `json:"grants"`
	Events       int64          `json:"events"`
	Findings     []Finding      `json:"findings,omitempty"`    // one for each kind of violation, in order of discovery
	States       map[string]int `json:"states,omitempty"`      // number of runs that reached each state, see [States]
	Failures     []Result       `json:"failures,omitempty"`    // the first runs that could not be completed
	Undrawn      int            `json:"undrawn,omitempty"`     // seeds that have no scenario
	Refusals     []Refusal      `json:"refusals,omitempty"`    // the first of them
	Repeated     int            `json:"repeated,omitempty"`    // runs that were repeated with the same history
	Differences  []Difference   `json:"differences,omitempty"` // the first runs that were repeated with another history
	Stopped      string         `json:"stopped,omitempty"`     // why not all seeds were run
	Covered      int            `json:"covered"`               // seeds from the first on of which none is missing
}

// Finding is one kind of violation and the first run that showed it.
type Finding struct {
	Kind      Kind                `json:"kind"`
	Runs      int                 `json:"runs"` // that show it
	Seed      uint64              `json:"seed"`
	Variation scenarios.Variation `json:"variation,omitempty"`
	Name      string              `json:"name"`               // of the scenario
	Command   string              `json:"command"`            // that repeats the run
	Scenario  string              `json:"scenario,omitempty"` // YAML, if it was drawn from the seed
	Sentence  string              `json:"sentence"`
	Dir       string              `json:"dir,omitempty"`      // of that run
	NotKept   string              `json:"not_kept,omitempty"` // why the run was not kept, or not completely
	At        time.Duration       `json:"at_ns"`              // real time since the start
}

// Difference is a run that had another history when it was repeated.
type Difference struct {
	Seed      uint64              `json:"seed"`
	Variation scenarios.Variation `json:"variation,omitempty"`
	Line      int                 `json:"line"` // the first line that differs
	Before    string              `json:"before"`
	After     string              `json:"after"`
}

const (
	maxFailures    = 10
	maxDifferences = 10
	perNewState    = 8 // variations of a run that reached a new state
	maxVariations  = 1000
	keepTimeout    = 20 * time.Second
	priorityShare  = 3 // one of so many seeds has its messages delivered by priorities
)

// explorer is an exploration in progress.
type explorer struct {
	Options
	pool  *Pool
	start time.Time

	mu     sync.Mutex
	next   int // number of jobs given out
	varied []Job
	report Report
	err    error
	known  map[string]bool // states that other shards have reached
	done   map[int]bool    // seeds by number, beyond report.Covered
}

// Explore makes o.Seeds runs and reports. When ctx ends, or after o.Time, unfinished runs are abandoned, and the
// report says so.
func Explore(ctx context.Context, pool *Pool, o Options) (Report, error) {
	if o.Seeds < 1 {
		return Report{}, fmt.Errorf("exploring %d seeds: at least one is needed", o.Seeds)
	}
	if o.Jobs <= 0 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	e := &explorer{Options: o, pool: pool, start: time.Now(), report: Report{States: map[string]int{}},
		known: map[string]bool{}, done: map[int]bool{}}
	e.report.Covered = o.Shard.Covered
	limited := ctx
	if o.Time > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, o.Time)
		defer cancel()
	}
	stop, err := e.share(ctx)
	if err != nil {
		return e.report, err
	}
	var wg sync.WaitGroup
	for range o.Jobs {
		wg.Go(func() { e.work(limited, ctx) })
	}
	wg.Wait()
	e.setError(context.WithoutCancel(ctx), stop())
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Took = time.Since(e.start)
	switch {
	case e.err != nil:
		e.report.Stopped = e.err.Error()
	case ctx.Err() != nil:
		e.report.Stopped = "interrupted"
	case limited.Err() != nil && e.report.Runs+e.report.Undrawn < o.Seeds:
		e.report.Stopped = fmt.Sprintf("time limit of %v reached", o.Time)
	}
	return e.report, e.err
}

// work makes runs until limited ends. A counterexample is kept even after that, until ctx ends.
func (e *explorer) work(limited, ctx context.Context) {
	for {
		j, ok := e.nextJob(limited)
		if !ok {
			return
		}
		r, err := e.pool.Do(limited, j)
		if err != nil {
			e.setError(limited, err)
			return
		}
		e.keepRun(ctx, j, e.count(j, r))
		e.addStates(ctx, j, r)
		e.repeat(limited, j, r)
		if e.Watch != nil {
			e.mu.Lock()
			r := e.snapshot()
			e.mu.Unlock()
			e.Watch(r)
		}
	}
}

func (e *explorer) setError(ctx context.Context, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil && err != nil && ctx.Err() == nil {
		e.err = err
	}
}

// count adds the run to the report and returns the indexes of new findings.
func (e *explorer) count(j Job, run Result) (fresh []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &e.report
	r.Runs++
	e.cover(j)
	if j.Variation.Priorities() {
		r.Priorities++
	}
	r.Virtual += run.Virtual
	r.CPU += run.CPU
	r.Commands += run.Commands
	r.Grants += int64(run.Grants)
	r.Events += int64(run.Events)
	switch {
	case run.Failure != "":
		r.Failed++
		if len(r.Failures) < maxFailures {
			r.Failures = append(r.Failures, run)
		}
		return nil
	case run.Verdict == checker.Unsafe:
		r.Unsafe++
	case run.Verdict == checker.Safe:
		r.Safe++
	default:
		r.Inconclusive++
	}
	e.countStates(j, run)
	for _, k := range run.Kinds {
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Kind == k })
		if i < 0 {
			i = len(r.Findings)
			r.Findings = append(r.Findings, e.finding(k, j, run))
			fresh = append(fresh, i)
		}
		r.Findings[i].Runs++
	}
	return fresh
}

// finding is the first run of a kind of violation.
func (e *explorer) finding(k Kind, j Job, run Result) Finding {
	f := Finding{Kind: k, Seed: j.Seed, Variation: j.Variation, Command: j.Command(), Sentence: run.Sentence,
		At: time.Since(e.start)}
	if s, err := scenarios.Parse([]byte(j.Scenario)); err == nil { // the worker has read it too
		f.Name = s.Name
	}
	if e.Draw != nil {
		f.Scenario = j.Scenario
	}
	return f
}

// countStates adds the states of the run, and varies it if one of them is new.
func (e *explorer) countStates(j Job, run Result) {
	fresh := false
	for _, s := range run.States {
		fresh = fresh || e.report.States[s] == 0 && !e.known[s]
		e.report.States[s]++
	}
	if !fresh || e.NoVariations || len(e.varied) > maxVariations {
		return
	}
	for v := range scenarios.Variation(perNewState) {
		e.varied = append(e.varied, Job{
			Scenario: j.Scenario, Name: j.Name, Seed: j.Seed, Variation: j.Variation*perNewState + v + 1,
		})
	}
}

// keepRun repeats a run with new findings, with its directory and report, even if ctx has ended meanwhile.
func (e *explorer) keepRun(ctx context.Context, j Job, fresh []int) {
	if len(fresh) == 0 || e.Out == "" {
		return
	}
	j.Keep = e.Out
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	r, err := e.pool.Do(ctx, j)
	if err != nil {
		r.Failure = err.Error()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, i := range fresh {
		e.report.Findings[i].Dir, e.report.Findings[i].NotKept = r.Dir, r.Failure
	}
}

// repeat makes the run again, as often as Options.Repeat says, and compares the histories. A repetition that fails
// counts as a difference.
func (e *explorer) repeat(ctx context.Context, j Job, first Result) {
	if e.Repeat < 2 || first.Failure != "" {
		return
	}
	for range e.Repeat - 1 {
		r, err := e.pool.Do(ctx, j)
		if err != nil {
			return
		}
		if r.Failure == "" && r.Hash == first.Hash {
			continue
		}
		d := Difference{Seed: j.Seed, Variation: j.Variation, Before: "it had a verdict", After: r.Failure}
		if r.Failure == "" {
			d = e.findDifference(ctx, j)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.report.Differences) < maxDifferences {
			e.report.Differences = append(e.report.Differences, d)
		}
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Repeated++
}

// findDifference repeats the run until its history differs, and returns the first line that does.
func (e *explorer) findDifference(ctx context.Context, j Job) Difference {
	const tries = 20
	d := Difference{Seed: j.Seed, Variation: j.Variation}
	j.History = true
	first, err := e.pool.Do(ctx, j)
	for range tries {
		if err != nil {
			break
		}
		var r Result
		if r, err = e.pool.Do(ctx, j); err == nil && r.Hash != first.Hash {
			d.Line, d.Before, d.After = FirstDifference(first.History, r.History)
			return d
		}
	}
	d.Before = "it was the same in every run that was made to compare it"
	return d
}

// snapshot is a copy of the report. e.mu is held.
func (e *explorer) snapshot() Report {
	r := e.report
	r.Took = time.Since(e.start)
	r.Findings = slices.Clone(r.Findings)
	r.States = maps.Clone(e.report.States)
	return r
}
