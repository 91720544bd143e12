package explore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/checker"
)

// Options of an exploration.
type Options struct {
	Scenario string        // YAML, as it is to be run
	Name     string        // how the scenario was named, for the command that repeats a run
	First    uint64        // seed; the others follow it
	Seeds    int           // how many runs; at least 1
	Time     time.Duration // no run begins later; 0: as long as it takes
	Jobs     int           // runs at a time; 0: one for each processor
	Out      string        // folder for the runs that are kept; "": keep none
	Repeat   int           // make each run so often and compare; 0 or 1: once
	Steady   bool          // do not vary runs that reached what no other has, and deliver nothing by priorities

	// Watch is told after each run. nil: nobody looks.
	Watch func(Report)
}

// Report is what is known so far.
type Report struct {
	Runs         int            `json:"runs"`
	Safe         int            `json:"safe"`
	Unsafe       int            `json:"unsafe"`
	Inconclusive int            `json:"inconclusive"`
	Failed       int            `json:"failed"`
	Varied       int            `json:"varied"`     // of the runs, those with a plan that had reached something new
	Priorities   int            `json:"priorities"` // of the runs, those whose messages arrived by priorities
	Virtual      time.Duration  `json:"virtual_ns"`
	Took         time.Duration  `json:"took_ns"`
	Commands     int64          `json:"commands"`
	Grants       int64          `json:"grants"`
	Events       int64          `json:"events"`
	Findings     []Finding      `json:"findings,omitempty"` // each kind of violation, in the order of their finding
	States       map[string]int `json:"states,omitempty"`   // interesting states, and in how many runs
	Failures     []Answer       `json:"failures,omitempty"` // runs that did not come to an end, the first few
	Same         int            `json:"same,omitempty"`     // runs that were repeated and were the same
	Unequal      []Difference   `json:"unequal,omitempty"`  // runs that differed when they were repeated
	Stopped      string         `json:"stopped,omitempty"`  // why it ended before all seeds were run
}

// Finding is one kind of violation and the first run that showed it.
type Finding struct {
	Kind     Kind          `json:"kind"`
	Runs     int           `json:"runs"` // that violate it
	Seed     uint64        `json:"seed"`
	Varied   uint64        `json:"variation,omitempty"`
	Sentence string        `json:"sentence"`
	Dir      string        `json:"dir,omitempty"`      // where that run is kept
	NotKept  string        `json:"not_kept,omitempty"` // why it is not, or not whole
	At       time.Duration `json:"at_ns"`              // real time since the beginning
}

// Difference is a run that was not the same when it was repeated.
type Difference struct {
	Seed      uint64 `json:"seed"`
	Variation uint64 `json:"variation,omitempty"`
	Line      int    `json:"line"` // of the history, the first that differs
	First     string `json:"first"`
	Again     string `json:"again"`
}

const (
	maxFailures   = 10
	maxDiffer     = 10
	perNewState   = 8 // variations of a plan that reached what no other had
	maxVariations = 1000
	keepWait      = 20 * time.Second
	perPriorities = 3 // one of so many seeds has its messages delivered by priorities
)

// explorer is an exploration under way.
type explorer struct {
	Options
	pool  *Pool
	begun time.Time

	mu     sync.Mutex
	next   int // seeds begun
	varied []Job
	report Report
	failed error
}

// Explore runs o.Seeds runs and reports. When ctx ends, or o.Time is over, runs
// that are under way are given up, and the report says so.
func Explore(ctx context.Context, pool *Pool, o Options) (Report, error) {
	if o.Seeds < 1 {
		return Report{}, fmt.Errorf("exploring %d seeds: there has to be at least one", o.Seeds)
	}
	if o.Jobs <= 0 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	e := &explorer{Options: o, pool: pool, begun: time.Now(), report: Report{States: map[string]int{}}}
	limited := ctx
	if o.Time > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, o.Time)
		defer cancel()
	}
	var wg sync.WaitGroup
	for range o.Jobs {
		wg.Go(func() { e.work(limited, ctx) })
	}
	wg.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Took = time.Since(e.begun)
	switch {
	case e.failed != nil:
		return e.report, e.failed
	case ctx.Err() != nil:
		e.report.Stopped = "interrupted"
	case limited.Err() != nil && e.report.Runs < o.Seeds:
		e.report.Stopped = fmt.Sprintf("%v were over", o.Time)
	}
	return e.report, nil
}

// work makes one run after the other. Counterexamples are kept also when the
// time for new runs is over.
func (e *explorer) work(limited, ctx context.Context) {
	for limited.Err() == nil {
		j, ok := e.take()
		if !ok {
			return
		}
		a, err := e.pool.Do(limited, j)
		if err != nil {
			e.fail(limited, err)
			return
		}
		fresh := e.count(j, a)
		e.keep(ctx, j, fresh)
		e.repeat(limited, j, a)
		if e.Watch != nil {
			e.mu.Lock()
			r := e.snapshot()
			e.mu.Unlock()
			e.Watch(r)
		}
	}
}

// take is the next run: a variation of a plan that reached something new, or
// the next seed.
func (e *explorer) take() (Job, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.next >= e.Seeds || e.failed != nil {
		return Job{}, false
	}
	e.next++
	if n := len(e.varied); n > 0 && e.next%2 == 0 { // every other run, so that seeds are never starved
		j := e.varied[0]
		e.varied = e.varied[1:]
		e.report.Varied++
		return j, true
	}
	n := e.next - 1 - e.report.Varied
	j := Job{Scenario: e.Scenario, Seed: e.First + uint64(n)}
	if n%perPriorities == perPriorities-1 && !e.Steady {
		j.Variation = 1 // an odd one: by priorities
	}
	return j, true
}

func (e *explorer) fail(ctx context.Context, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed == nil && ctx.Err() == nil {
		e.failed = err
	}
}

// count adds the run to the report and returns the kinds of violation that are new.
func (e *explorer) count(j Job, a Answer) (fresh []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &e.report
	r.Runs++
	if j.ByPriorities() {
		r.Priorities++
	}
	r.Virtual += a.Virtual
	r.Commands += a.Commands
	r.Grants += int64(a.Grants)
	r.Events += int64(a.Events)
	switch {
	case a.Failure != "":
		r.Failed++
		if len(r.Failures) < maxFailures {
			r.Failures = append(r.Failures, a)
		}
		return nil
	case a.Verdict == checker.Unsafe:
		r.Unsafe++
	case a.Verdict == checker.Safe:
		r.Safe++
	default:
		r.Inconclusive++
	}
	e.reach(j, a)
	for _, k := range a.Kinds {
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Kind == k })
		if i < 0 {
			i = len(r.Findings)
			r.Findings = append(r.Findings, Finding{
				Kind: k, Seed: j.Seed, Varied: j.Variation, Sentence: a.Sentence, At: time.Since(e.begun),
			})
			fresh = append(fresh, i)
		}
		r.Findings[i].Runs++
	}
	return fresh
}

// reach notes the states of the run, and has its plan varied if one of them is new.
func (e *explorer) reach(j Job, a Answer) {
	fresh := false
	for _, s := range a.States {
		fresh = fresh || e.report.States[s] == 0
		e.report.States[s]++
	}
	if !fresh || e.Steady || len(e.varied) > maxVariations {
		return
	}
	for v := range uint64(perNewState) {
		e.varied = append(e.varied, Job{Scenario: e.Scenario, Seed: j.Seed, Variation: j.Variation*perNewState + v + 1})
	}
}

// keep makes the run again, whole and with its report, if it shows something
// new; also when the user has just had enough.
func (e *explorer) keep(ctx context.Context, j Job, fresh []int) {
	if len(fresh) == 0 || e.Out == "" {
		return
	}
	j.Keep, j.Name = e.Out, e.Name
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepWait)
	defer cancel()
	a, err := e.pool.Do(ctx, j)
	if err != nil {
		a.Failure = err.Error()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, i := range fresh {
		e.report.Findings[i].Dir, e.report.Findings[i].NotKept = a.Dir, a.Failure
	}
}

// repeat makes the run again as often as was asked and compares. A run that fails
// when it is made again is not the same.
func (e *explorer) repeat(ctx context.Context, j Job, a Answer) {
	for n := 1; n < e.Repeat && a.Failure == ""; n++ {
		again, err := e.pool.Do(ctx, j)
		if err != nil {
			return
		}
		if again.Failure == "" && again.Hash == a.Hash {
			continue
		}
		d := Difference{Seed: j.Seed, Variation: j.Variation, First: "it had a verdict", Again: again.Failure}
		if again.Failure == "" {
			d = e.differ(ctx, j)
		}
		e.mu.Lock()
		if len(e.report.Unequal) < maxDiffer {
			e.report.Unequal = append(e.report.Unequal, d)
		}
		e.mu.Unlock()
		return
	}
	if e.Repeat > 1 && a.Failure == "" {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.report.Same++
	}
}

// differ makes the run until it differs from itself again, and shows where.
func (e *explorer) differ(ctx context.Context, j Job) Difference {
	const most = 20
	d := Difference{Seed: j.Seed, Variation: j.Variation}
	j.Events = true
	first, err := e.pool.Do(ctx, j)
	for range most {
		if err != nil {
			break
		}
		var again Answer
		if again, err = e.pool.Do(ctx, j); err == nil && again.Hash != first.Hash {
			d.Line, d.First, d.Again = FirstDifference(first.History, again.History)
			return d
		}
	}
	d.First = "it was the same whenever it was made again in order to compare"
	return d
}

// snapshot is a copy of the report that nobody changes. e.mu is held.
func (e *explorer) snapshot() Report {
	r := e.report
	r.Took = time.Since(e.begun)
	r.Findings = slices.Clone(r.Findings)
	r.States = map[string]int{}
	for s, n := range e.report.States { // order does not matter: a copy
		r.States[s] = n
	}
	return r
}
