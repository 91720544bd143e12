// Package runner carries out one scenario: it starts the cluster and the
// clients, lets the workload and the faults loose on them, heals whatever was
// broken, and has the recorded history judged. It is the same for all
// backends. It renders nothing: package reports shows a run directory.
//
// Read [Run] first. However a run ends, every fault is healed, every child is
// gone, and what was recorded is on disk before anything is judged.
package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
	"github.com/lockchaos/lockchaos/workloads"
)

// Options of one run.
type Options struct {
	Scenario  scenarios.Scenario
	Seed      uint64
	Variation scenarios.Variation
	Backend   Backend
	Why       string   // why this backend, for the report
	Out       string   // folder for runs; "" is rundir.Root
	InMemory  bool     // leave nothing on disk: see Outcome.History
	Repeat    string   // the command that runs it again
	Version   string   // of this program
	Search    []string // the command that answers checker questions, see checker.Options.SearchCommand

	// Lock is a lock from outside the catalogue instead of the scenario's. A client in a process of its own does not
	// know it and refuses to be set up. nil: the scenario's.
	Lock *client.Spec

	// Watch is told of the state of the run ten times a second, and at every
	// change of phase. nil: nobody looks.
	Watch func(Status)
}

// Status is what can be seen of a run while it goes on.
type Status struct {
	Phase     string
	Elapsed   time.Duration // since the command began, by the run's own clock: virtual time counts as it passes there
	Remaining time.Duration // until clients stop starting operations; 0 outside phase run
	Time      time.Duration // of the last event
	Events    int
	Grants    int
	Unknown   int
	Overlaps  bool             // two clients believed at the same time that they held one key
	Holders   map[string][]int // clients by key
	Faults    map[int]string   // in force, by id
}

// Outcome is a run that has been judged.
type Outcome struct {
	Dir       *rundir.Dir // nil with Options.Memory
	History   []byte      // JSON lines, with Options.Memory
	Manifest  rundir.Manifest
	Judgement checker.Judgement
}

// ErrInterrupted says that the user ended the run early. The outcome that
// comes with it is judged and whole.
var ErrInterrupted = errors.New("the run was interrupted")

// run is one run under way.
type run struct {
	Options
	params   workloads.Params
	lock     client.Spec // under test
	plan     scenarios.Plan
	records  records
	manifest rundir.Manifest
	started  time.Time // of the command, as the world outside has it

	mu          sync.Mutex // guards what Watch is told, and m.Phases
	status      func() Status
	current     string        // phase
	phaseStart  time.Duration // start of the phase, by clock
	clockBefore time.Duration // what the clock had counted at from
	clockStart  time.Time     // zero: the clock stands still
}

// lockSpec is the lock under test.
func (o Options) lockSpec() (client.Spec, error) {
	if o.Lock != nil {
		return *o.Lock, nil
	}
	return client.Lookup(o.Scenario.Lock)
}

// Run carries out o.Scenario. When ctx ends the run is cut short: clients
// finish what they are doing, faults are healed, the history is judged, and the
// error is ErrInterrupted. With any other error there may be a run directory
// all the same; then the outcome has it.
func Run(ctx context.Context, o Options) (*Outcome, error) {
	lock, err := o.lockSpec()
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, lock: lock, params: o.Scenario.Workload.Defaults(), plan: o.Scenario.Plan(o.Seed), started: time.Now()}
	r.startClock()
	r.status = func() Status { return Status{} }
	if err := r.records.create(o, r.started); err != nil {
		return nil, err
	}
	defer r.records.ledger.Close()
	r.describe()
	if err := r.records.createFiles(r.manifest); err != nil {
		return nil, err
	}
	out := &Outcome{Dir: r.records.dir}
	r.stopClock()
	failed := r.Backend.Live(ctx, r.live)
	r.startClock()
	if failed != nil && !errors.Is(failed, ErrInterrupted) {
		r.manifest.State, r.manifest.Failure = rundir.Broken, failed.Error()
	}
	judged := r.judge(out)
	r.manifest.Finished = time.Now()
	out.Manifest, out.History = r.manifest, r.records.text.Bytes()
	return out, errors.Join(failed, judged, r.records.manifest(r.manifest))
}

// live is the run where the backend's time passes.
func (r *run) live(ctx context.Context) error {
	r.startClock()
	defer r.stopClock()
	return r.perform(ctx)
}

// resume and halt have the run's own clock go on and stand still. Time reads
// differently inside and outside of a backend, but what has passed adds up.
func (r *run) startClock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clockStart = time.Now()
}

func (r *run) stopClock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clockBefore, r.clockStart = r.clock(), time.Time{}
}

// clock is how long the run has taken so far. r.mu is held.
func (r *run) clock() time.Duration {
	if r.clockStart.IsZero() {
		return r.clockBefore
	}
	return r.clockBefore + time.Since(r.clockStart)
}

// perform is the run itself: everything up to the last event.
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
	ctx, release := withSubstrate(ctx, s.cluster)
	defer release()
	ctx = r.Backend.Actor(ctx, "main")
	r.setStatus(s.track.snapshot)
	r.phase("run")
	s.startWork()
	select {
	case <-ctx.Done():
	case <-s.clientsDone:
	case <-time.After(r.Scenario.Duration):
	}
	r.phase("heal")
	s.endWork(ctx)
	r.manifest.State = rundir.Complete
	if ctx.Err() != nil {
		return r.stopReason(ctx)
	}
	return s.recordError()
}

// founded is ctx that also ends, with its cause, when what c stands on is gone.
func withSubstrate(ctx context.Context, c cluster.Cluster) (context.Context, func()) {
	substrate, ok := c.(cluster.Substrate)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-substrate.Lost():
			cancel(substrate.Err())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// cutShort says why the run came to its end before its time.
func (r *run) stopReason(ctx context.Context) error {
	if why := context.Cause(ctx); !errors.Is(why, context.Canceled) && !errors.Is(why, context.DeadlineExceeded) {
		return why
	}
	r.manifest.State = rundir.Interrupted
	return ErrInterrupted
}

// judge reads back what was recorded and judges it.
func (r *run) judge(out *Outcome) error {
	r.phase("judge")
	defer r.phase("")
	h, err := r.records.history()
	if err != nil {
		return err
	}
	h.Clients = r.params.Clients
	out.Judgement = checker.Judge(h, r.judgeOptions())
	out.Judgement = r.manifest.Downgrade(out.Judgement)
	return r.records.verdict(out.Judgement)
}

// judgeOptions are what the judge cannot read in the history.
func (r *run) judgeOptions() checker.Options {
	return checker.Options{SearchCommand: r.Search, MayBeDown: r.manifest.MayBeDown()}
}

// phase ends the phase before and begins the next; "" begins none.
func (r *run) phase(name string) {
	r.mu.Lock()
	now := r.clock()
	if n := len(r.manifest.Phases); n > 0 && r.manifest.Phases[n-1].End == 0 {
		r.manifest.Phases[n-1].End = now
	}
	if name != "" {
		r.manifest.Phases = append(r.manifest.Phases, rundir.Phase{Name: name, Start: now})
	}
	r.current, r.phaseStart = name, now
	r.mu.Unlock()
	r.notify()
}

// refresh tells whoever watches.
func (r *run) notify() {
	r.mu.Lock()
	name, now, status := r.current, r.clock(), r.status
	left := r.phaseStart + r.Scenario.Duration - now
	r.mu.Unlock()
	if r.Watch == nil || name == "" {
		return
	}
	s := status()
	s.Phase, s.Elapsed = name, now
	if name == "run" {
		s.Remaining = max(0, left)
	}
	r.Watch(s)
}

// follow has the status come from f.
func (r *run) setStatus(f func() Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = f
}

// describe fills in what is known of the run before it begins.
func (r *run) describe() {
	s, facts := r.Scenario, r.Backend.Facts()
	r.manifest = rundir.Manifest{
		Format: rundir.Format, ID: r.records.id(), State: rundir.Running,
		Scenario: s.Name, Summary: s.Summary, Source: s.Source, YAML: s.YAML(),
		Seed: r.Seed, Variation: r.Variation, Repeat: r.Repeat,
		Backend: facts.Name, Why: r.Why, Deterministic: facts.Deterministic, Lock: r.lock.Name, Workload: r.params.Kind, Clients: r.params.Clients,
		Keys: r.params.KeyNames(), Lease: r.params.Lease, Topology: s.Topology.Defaults(), Expect: s.Expect,
		Started: r.started, Plan: r.plan.All(), Versions: versions(r.Version), Machine: machine(),
	}
}

// longestPause is for how long the plan may have a client stand still.
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
