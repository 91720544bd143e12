package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/refusals"
	"github.com/lockchaos/lockchaos/internal/runner/witness"
	"github.com/lockchaos/lockchaos/internal/stalls"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/scenarios"
	"github.com/lockchaos/lockchaos/workloads"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// How long the end of a run may take before it is forced.
const (
	drainGrace     = 10 * time.Second // more than an operation may take by itself
	closeTimeout   = 10 * time.Second
	interruptGrace = time.Second // for clients to finish, after the user has interrupted the run
)

// stage is everything that a run has started and has to stop.
type stage struct {
	run      *run
	cluster  cluster.Cluster
	env      backend.Env     // of the clients
	clients  []client.Client // guarded by mu, as are the sessions, from startWork on
	gone     []client.Client // that others have replaced; guarded by mu
	restarts []chan client.Client
	pauses   []atomic.Uint32 // by client: see stalls.Process
	can      promise.Set     // common to the locks of all clients
	sessions []*session.Session
	record   *history.Recorder
	track    *tracker
	nemesis  *nemesis
	witness  *witness.Witness
	notes    notes
	mu       sync.Mutex

	stop        chan struct{} // closed: start no new operations
	clientsDone chan struct{} // closed when every client's workload has returned
	faultsDone  chan struct{} // closed when the plan has been executed or stopped
	cancelWork  context.CancelFunc
	stopFaults  context.CancelFunc
	stopWitness context.CancelFunc // nil before startWork
	workloads   sync.WaitGroup
	listeners   sync.WaitGroup
	observers   sync.WaitGroup // nemesis and witness
	ended       bool           // endWork was called
	interrupted bool           // do not wait for operations
	unable      chan error     // has the reason, if the run had to end early
	clock       *stalls.Clock
	until       time.Duration // when clients start no more operations, by the plan's time; set by startWork
	lateness    stalls.Lateness
	elections   stalls.Elections
}

// open starts the cluster, then the clients. It returns the stage also with an error, if there is anything to close.
func (r *run) open(ctx context.Context) (*stage, error) {
	s := &stage{
		run: r, track: newTracker(r.params.Clients, r.params.KeyNames()),
		clientsDone: make(chan struct{}), stop: make(chan struct{}), faultsDone: make(chan struct{}),
		unable: make(chan error, 1),
	}
	env := backend.Env{
		Topology: r.manifest.Topology, Dir: r.records.dir, Ledger: r.records.ledger, Lock: r.locks[0],
		Clients: r.params.Clients, PerProcess: r.params.PerProcess, Duration: r.Scenario.Duration,
		InitTimeout: cmp.Or(r.Scenario.InitTimeout, scenarios.InitTimeout),
		Seed:        r.Variation.Seed(r.Seed), Priorities: r.Variation.Priorities(), Requirements: r.Scenario.Requirements(),
		Note: s.notes.add,
	}
	var err error
	if s.cluster, err = r.Backend.Start(ctx, env); err != nil {
		return s, err
	}
	r.manifest.Nodes = s.cluster.Nodes()
	facts := r.Backend.Facts()
	r.manifest.Delivery = facts.Delivery
	maps.Copy(r.manifest.Versions, facts.Versions)
	if err := s.checkFaults(); err != nil {
		return s, err
	}
	if err := s.startClients(ctx, env); err != nil {
		return s, err
	}
	if why := r.Scenario.NotFor(s.can); why != "" { // the promises of a program are not known before
		return s, fmt.Errorf("%w: %s", client.ErrUnfit, why)
	}
	row, _ := workloads.Lookup(r.params.Kind) // the loader has checked it
	r.manifest.Can, r.manifest.NotExercised = s.can, row.Uses.Without(s.can)
	r.manifest.SetExpected(r.Scenario)
	return s, errors.Join(s.openRecords(), r.records.manifest(r.manifest))
}

// checkFaults reports the faults of the plan that this cluster cannot have.
func (s *stage) checkFaults() error {
	var all []error
	seen := map[string]bool{}
	for _, step := range s.run.plan.All() {
		row, err := faults.Lookup(step.Fault)
		if err != nil || seen[step.Fault] {
			continue
		}
		seen[step.Fault] = true
		all = append(all, row.Check(s.cluster))
	}
	return errors.Join(all...)
}

// openRecords opens the files of the run; the history's time 0 is now.
func (s *stage) openRecords() error {
	events, samples, err := s.run.records.open()
	if err != nil {
		return err
	}
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) }
	s.clock, s.record = &stalls.Clock{History: clock}, history.NewRecorder(&notingErrors{events, s.endEarly}, clock)
	s.witness, err = witness.New(witness.Config{
		Cluster: s.cluster, Params: s.run.params, Clock: clock, How: s.run.Backend.Facts().Sampling, Out: samples,
		Changed: s.noteNodeChange, Sampled: s.track.sampled,
	})
	if err != nil {
		return err
	}
	s.record.OnEvent = func(e history.Event) {
		s.track.add(e)
		if s.elections.Add(e); s.run.Event != nil {
			s.run.Event(&e)
		}
		s.witness.Noticed(&e)
	}
	s.notes.begin(s.record)
	s.nemesis = &nemesis{
		time:   s.run.Backend,
		env:    faults.Env{Cluster: s.cluster, Clients: s, Keys: s.run.params.KeyNames(), State: s.track},
		record: s.record, track: s.track, clock: s.clock, seed: s.run.Seed, maxDown: s.run.Scenario.MaxDown(),
		begun: make(chan struct{}),
	}
	return nil
}

// endEarly ends the run, which fails with the reason.
func (s *stage) endEarly(why error) {
	select {
	case s.unable <- why:
	default: // it has been ended
	}
}

// notingErrors is a writer that passes on its errors.
type notingErrors struct {
	io.Writer
	note func(error)
}

func (w *notingErrors) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if err != nil {
		w.note(err)
	}
	return n, err
}

// noteNodeChange records events that explain a run: a node that became master, went away, or came back.
func (s *stage) noteNodeChange(before, now history.Sample) {
	v := &history.FaultValue{Phase: history.Noted, Target: now.Node}
	f := ""
	switch {
	case now.Up && now.Role == "master" && before.Role == "slave":
		f, v.Detail = history.NodePromoted, now.Node+" reports that it is a master"
	case now.Up && now.Role == "slave" && before.Role == "master":
		f, v.Detail = history.NodeDemoted, now.Node+" reports that it is a replica"
	case before.Up && !now.Up:
		f, v.Detail, v.Lasted = history.NodeSilent, now.Node+" does not reply", s.witness.SilentFor(now.Node)
	case !before.Up && now.Up:
		f, v.Detail = history.NodeReplies, now.Node+" replies again"
	default:
		return
	}
	s.record.Note(history.Nemesis, f, "", &history.Value{Fault: v})
}

// startWork starts the workload, the plan of faults and the witness.
func (s *stage) startWork() {
	r := s.run
	var sampling, plan, work context.Context
	sampling, s.stopWitness = context.WithCancel(context.Background())
	plan, s.stopFaults = context.WithCancel(context.Background())
	work, s.cancelWork = context.WithCancel(context.Background())
	guard := session.NewGuard(r.params.Fenced)
	row, _ := workloads.Lookup(r.params.Kind) // the loader has checked it
	for range s.clients {
		s.restarts = append(s.restarts, make(chan client.Client, 1))
	}
	s.observers.Go(func() { s.witness.Run(sampling, r.Backend) })
	s.observers.Go(func() { s.watchStalls(sampling) })
	if links, ok := s.cluster.(cluster.Links); ok && !r.Backend.Facts().Deterministic {
		watch := refusals.Watch{Links: links, Clients: r.params.Clients, Clock: s.clock.History, Note: s.noPassword,
			End: s.endEarly, Granted: func() bool { return s.track.snapshot().Grants > 0 }}
		s.observers.Go(func() { watch.Run(sampling) })
	}
	s.observers.Go(func() {
		defer close(s.faultsDone)
		s.nemesis.run(plan, r.plan)
	})
	<-s.nemesis.begun
	s.until = s.clock.Now() + r.Scenario.Duration
	r.setStatus(s.status)
	for i, c := range s.clients {
		opened := session.New(s.authenticated(c, i), s.record, i, r.params.Clients, r.Backend.Mono)
		opened.AllowPause(r.longestPause())
		if s.can.Has(promise.Unleased) {
			opened.WithoutLeases()
		}
		s.mu.Lock()
		s.sessions = append(s.sessions, opened)
		s.mu.Unlock()
		s.listeners.Go(opened.Listen)
		env := workload.Env{
			Params: r.params, Session: opened, Guard: guard, Can: s.can,
			Left: s.left,
			Rand: rand.New(rand.NewPCG(r.Variation.Seed(r.Seed), uint64(i)+0x10C5)),
			Seed: r.Variation.Seed(r.Seed),
		}
		ctx := r.Backend.Actor(work, fmt.Sprintf("client-%d", i))
		s.workloads.Go(func() {
			r.Backend.Turn(ctx)
			for begins := r.params.Begins(ctx, s.stop, i); begins; begins = s.restarted(ctx, i, &env) {
				row.Client(ctx, s.stop, env)
			}
		})
	}
	go func() {
		s.workloads.Wait()
		close(s.clientsDone)
	}()
}

// left is the remaining time in which clients start operations.
func (s *stage) left() time.Duration { return s.until - s.clock.Now() }

func (s *stage) status() Status {
	now := s.track.snapshot()
	now.Remaining = max(0, s.left())
	return now
}

// endWork heals the faults that keep clients from finishing their operations, waits for the clients, and heals the
// rest.
func (s *stage) endWork(ctx context.Context) {
	s.ended = true
	turn := s.run.Backend.Turn
	turn(ctx)
	close(s.stop)
	s.stopFaults()
	grace := context.WithoutCancel(ctx)
	s.clock.Wait(grace, s.faultsDone, healTimeout) // an injection that is in progress has to be healed too
	s.nemesis.heal(grace, false)
	p := s.run.params
	if !s.waitForClients(ctx, drainGrace+p.Hold+p.Jitter) {
		s.cancelWork()
		s.clock.Wait(grace, s.clientsDone, drainGrace)
	}
	turn(ctx)
	s.interrupted = ctx.Err() != nil
	s.nemesis.heal(grace, true)
	turn(ctx)
	if !s.interrupted && !s.nemesis.failed.Load() { // otherwise the checks may see the fault, not the lock
		s.finalChecks(ctx)
	}
}

// waitForClients waits until the clients have finished, for timeout at most, and not much longer than ctx.
func (s *stage) waitForClients(ctx context.Context, timeout time.Duration) bool {
	return s.clock.Wait(ctx, s.clientsDone, timeout) ||
		s.clock.Wait(context.WithoutCancel(ctx), s.clientsDone, interruptGrace)
}

// recordError is the error that kept events or samples from being recorded.
func (s *stage) recordError() error { return errors.Join(s.record.Err(), s.witness.Err()) }

// close stops everything that was started, in whatever state it is.
func (s *stage) close(ctx context.Context) error {
	timeout := closeTimeout
	if s.stopWitness == nil || s.interrupted {
		timeout = interruptGrace
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if s.stopWitness != nil && !s.ended {
		s.endWork(ctx)
	}
	if s.cancelWork != nil {
		s.cancelWork()
	}
	if s.stopWitness != nil { // first: a lock may give up its holds when its client is closed
		s.stopWitness()
	}
	s.closeClients(ctx)
	s.listeners.Wait()
	s.endLeftProcesses()
	s.notes.end()
	if s.stopWitness != nil {
		s.observers.Wait()
		s.run.samples = s.witness.Kept()
		s.run.manifest.Slept, s.run.manifest.Late = s.lateness.Slept, s.lateness.Late
		s.run.manifest.Elected = s.elections.Text()
	}
	var err error
	if s.cluster != nil {
		err = s.cluster.Close(ctx)
	}
	return errors.Join(err, s.run.records.close())
}
