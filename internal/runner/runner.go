// Package runner executes one scenario: it starts servers and clients, runs the workload, injects and heals faults,
// records the history and has it judged. It is the same for all backends. It renders nothing: package reports shows a
// run directory.
//
// Read [Run] first. However a run ends, every fault is healed, every child has exited, and the history is on disk
// before it is judged.
package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// Options of one run.
type Options struct {
	Scenario  scenarios.Scenario
	Seed      uint64
	Variation scenarios.Variation
	Backend   backend.Backend
	Why       string   // why this backend, for the report
	Out       string   // directory for runs; "" is rundir.Root
	InMemory  bool     // leave nothing on disk: see Outcome.History
	Repeat    string   // the command that repeats the run
	Version   string   // of this program
	Search    []string // see checker.Options.SearchCommand

	// Lock is a lock from outside the catalog instead of the scenario's. A client in a process of its own does not
	// know it and refuses to be set up. nil: the scenario's.
	Lock *client.Spec

	// Event is called with each event as it is recorded, one at a time. nil: it is not.
	Event func(*history.Event)

	// Watch is called ten times a second, and at every change of phase. nil: it is not.
	Watch func(Status)
}

// Status is the state of a run in progress.
type Status struct {
	Phase     string
	Elapsed   time.Duration // since the start of the command; in a simulation, of virtual time
	Remaining time.Duration // until clients stop starting operations, if nobody ends the run before
	Time      time.Duration // of the last event
	Events    int
	Grants    int
	Unknown   int              // operations of unknown outcome
	Overlaps  bool             // two holds of one key have overlapped
	Holders   map[string][]int // clients by key
	Faults    map[int]string   // in force, by id
}

// Outcome is a run that has been judged.
type Outcome struct {
	Dir       *rundir.Dir // nil with Options.InMemory
	History   []byte      // JSON lines, with Options.InMemory
	Manifest  rundir.Manifest
	Judgement checker.Judgement
}

// ErrInterrupted reports that the user ended the run early. Its outcome is complete and judged.
var ErrInterrupted = errors.New("the run was interrupted")

// run is a run in progress.
type run struct {
	Options
	params   workload.Params
	locks    []client.Spec // of all clients, see scenarios.Scenario.Locks
	plan     scenarios.Plan
	records  records
	manifest rundir.Manifest
	started  time.Time        // of the command, in real time
	samples  []history.Sample // of a run in memory

	mu         sync.Mutex    // guards the following fields, and manifest.Phases
	status     func() Status // nil before clients begin
	current    string        // phase
	clockSum   time.Duration // before clockStart
	clockStart time.Time     // zero: the clock is stopped
}

// Run executes o.Scenario. When ctx ends, clients finish their operations, faults are healed, the history is judged,
// and the error is [ErrInterrupted]. After any other error there may be a run directory as well; the outcome has it.
func Run(ctx context.Context, o Options) (*Outcome, error) {
	r := &run{Options: o, params: o.Scenario.Workload.Defaults(), plan: o.Scenario.Plan(o.Seed), started: time.Now()}
	if err := r.setLock(); err != nil {
		return nil, err
	}
	if o.Scenario.Topology.Given() { // others may use the same servers, and other runs on this machine the same files
		r.params.Prefix = cluster.NewPrefix()
	}
	r.startClock()
	if err := r.records.create(o, r.started); err != nil {
		return nil, err
	}
	defer r.records.ledger.Close()
	r.manifest = r.newManifest()
	if !o.InMemory { // only a file is read without the scenario at hand
		r.manifest.YAML = r.Scenario.YAML()
	}
	if err := r.records.createFiles(r.manifest); err != nil {
		return nil, err
	}
	out := &Outcome{Dir: r.records.dir}
	r.stopClock()
	failed := r.Backend.Live(ctx, func(ctx context.Context) error {
		r.startClock()
		defer r.stopClock()
		return r.perform(ctx)
	})
	r.startClock()
	if failed != nil && !errors.Is(failed, ErrInterrupted) {
		r.manifest.State = rundir.Broken
		r.manifest.Failure = strings.ReplaceAll(rundir.JoinUnwritten(failed).Error(), "\n", "; ")
	}
	judged := r.judge(out)
	r.manifest.Finished = time.Now()
	out.Manifest, out.History = r.manifest, r.records.text.Bytes()
	return out, errors.Join(failed, judged, r.records.manifest(r.manifest))
}

func (r *run) setLock() error {
	if r.Options.Lock != nil {
		r.locks = []client.Spec{*r.Options.Lock}
		return nil
	}
	for _, name := range r.Scenario.LockNames() {
		row, err := adapters.Lookup(name)
		if err != nil {
			return err
		}
		r.locks = append(r.locks, row)
	}
	return nil
}

// lockOf is the lock of client i, and its options.
func (r *run) lockOf(i int) (client.Spec, map[string]string) {
	name, options := r.Scenario.LockOf(i, r.params.Clients)
	for _, row := range r.locks {
		if row.Name == name {
			return row, options
		}
	}
	return r.locks[0], options // a lock from outside the catalog
}

// lockText is the locks of all clients, for people.
func (r *run) lockText() string {
	if r.Options.Lock != nil {
		return r.Options.Lock.Name
	}
	return r.Scenario.LockText()
}

// hasProgram reports whether a client of the run is a program of its own.
func (r *run) hasProgram() bool {
	return slices.ContainsFunc(r.locks, func(row client.Spec) bool { return row.Command != nil })
}

// newManifest has the facts of the run before it begins.
func (r *run) newManifest() rundir.Manifest {
	s, facts := r.Scenario, r.Backend.Facts()
	return rundir.Manifest{
		Format: rundir.Format, ID: r.records.id(), State: rundir.Running, Started: r.started,
		Scenario: s.Name, Summary: s.Summary, Source: s.Source, Production: s.Production,
		Thresholds: s.Thresholds, Topology: s.Topology.Defaults(), Plan: r.plan.All(),
		Seed: r.Seed, Variation: r.Variation, Repeat: r.Repeat,
		Backend: facts.Name, Why: r.Why, Deterministic: facts.Deterministic,
		Lock: r.lockText(), Foreign: r.Options.Lock != nil || r.hasProgram(),
		Workload: r.params.Kind, Clients: r.params.Clients, Keys: r.params.KeyNames(),
		Lease: r.params.Lease, Versions: versions(r.Version), Machine: machine(),
	}
}

// The clock of a run counts real time outside of the backend and the backend's time inside, where time.Now may differ.
func (r *run) startClock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clockStart = time.Now()
}

func (r *run) stopClock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clockSum, r.clockStart = r.clock(), time.Time{}
}

// clock is the duration of the run so far. r.mu is held.
func (r *run) clock() time.Duration {
	if r.clockStart.IsZero() {
		return r.clockSum
	}
	return r.clockSum + time.Since(r.clockStart)
}

// perform is everything from the start of the servers to the last event.
func (r *run) perform(ctx context.Context) (err error) {
	stopWatch := r.watch()
	defer stopWatch()
	r.phase("start")
	s, err := r.open(ctx)
	if s != nil {
		defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	}
	if err != nil {
		if ctx.Err() != nil {
			r.manifest.State = rundir.Interrupted
			return ErrInterrupted
		}
		return err
	}
	ctx, release := s.ending(ctx)
	defer release()
	ctx = r.Backend.Actor(ctx, "main")
	r.phase(rundir.PhaseRun)
	s.startWork()
	s.clock.Wait(ctx, s.clientsDone, s.left())
	r.phase("heal")
	s.endWork(ctx)
	r.manifest.State = rundir.Complete
	if ctx.Err() != nil {
		return r.stopReason(ctx)
	}
	return s.recordError()
}

// ending derives a context from ctx that also ends, with that cause, when the run has to end early (see endEarly) or
// the infrastructure of its servers is lost.
func (s *stage) ending(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	lost, why := (<-chan struct{})(nil), func() error { return nil }
	if substrate, ok := s.cluster.(cluster.Substrate); ok {
		lost, why = substrate.Lost(), substrate.Err
	}
	go func() {
		select {
		case <-lost:
			cancel(why())
		case err := <-s.unable:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// stopReason says why the run ended early.
func (r *run) stopReason(ctx context.Context) error {
	if why := context.Cause(ctx); !errors.Is(why, context.Canceled) && !errors.Is(why, context.DeadlineExceeded) {
		return why
	}
	r.manifest.State = rundir.Interrupted
	return ErrInterrupted
}

// judge judges the history as it is on disk.
func (r *run) judge(out *Outcome) error {
	r.phase("judge")
	defer r.phase("")
	h, err := r.records.history()
	if err != nil {
		return err
	}
	h.Clients = r.params.Clients
	if h.Samples = r.samples; h.Samples == nil {
		h.Samples = r.records.samples()
	}
	h.Samples = rundir.SamplesUntil(h.Samples, h.End)
	o := r.manifest.JudgingOf(r.Scenario)
	o.SearchCommand = r.Search
	j := checker.Judge(h, o)
	out.Judgement = r.manifest.Downgrade(j)
	return r.records.verdict(out.Judgement)
}

// longestPause is how long the plan may pause a client.
func (r *run) longestPause() time.Duration {
	var longest time.Duration
	for _, step := range r.plan.All() {
		if step.For == 0 {
			return r.Scenario.Duration
		}
		longest = max(longest, step.For)
	}
	return longest
}
