package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/faults"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/workloads"
)

// How long the end of a run may take before it is forced.
const (
	drainGrace     = 10 * time.Second // beyond what an operation may take by itself
	closeTimeout   = 10 * time.Second
	initTimeout    = 15 * time.Second
	interruptGrace = time.Second // for clients to finish, when the user has interrupted the run
)

// stage is everything that a run has started and has to end again.
type stage struct {
	run      *run
	cluster  cluster.Cluster
	clients  []client.Client
	sessions []*workloads.Session
	record   *history.Recorder
	track    *tracker
	nemesis  *nemesis
	witness  *witness

	clientsDone chan struct{} // closed when every client loop has ended
	stop        chan struct{} // closed: start no new operations
	cancelWork  context.CancelFunc
	stopFaults  context.CancelFunc // ends the nemesis
	faultsDone  chan struct{}      // closed when it has ended
	stopWitness context.CancelFunc // ends the witness
	loops       sync.WaitGroup
	listeners   sync.WaitGroup
	observers   sync.WaitGroup // nemesis and witness
	ended       bool
	interrupted bool // the run was cut short: nobody finishes anything
}

// open starts the cluster, then the clients. The stage is returned also with
// an error, if there is anything to close.
func (r *run) open(ctx context.Context) (*stage, error) {
	s := &stage{
		run: r, track: newTracker(r.params.Clients, r.params.KeyNames()),
		clientsDone: make(chan struct{}), stop: make(chan struct{}), faultsDone: make(chan struct{}),
	}
	env := RunEnv{
		Topology: r.manifest.Topology, Dir: r.records.dir, Ledger: r.records.ledger, Lock: r.lock,
		Clients: r.params.Clients, PerProcess: r.params.PerProcess, Duration: r.Scenario.Duration,
		Seed: r.Variation.Seed(r.Seed), Priorities: r.Variation.Priorities(), Requirements: r.plan.Requirements(),
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
	return s, errors.Join(s.openRecords(), r.records.manifest(r.manifest))
}

// able says before anything is broken which fault this cluster cannot have.
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

// startClients starts all clients at once and has each of them set up.
func (s *stage) startClients(ctx context.Context, env RunEnv) error {
	n := s.run.params.Clients
	s.clients = make([]client.Client, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = s.startClient(ctx, env, i) })
	}
	wg.Wait()
	return firstError(errs)
}

// firstOf is the first error, with the number of those that it stands for: what
// is wrong with one client is mostly wrong with all, and there may be a thousand.
func firstError(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	return fmt.Errorf("%w; and so, or likewise, for %d more clients", errs[0], len(errs)-1)
}

func (s *stage) startClient(ctx context.Context, env RunEnv, i int) error {
	c, err := s.run.Backend.Client(ctx, env, i)
	if err != nil {
		return fmt.Errorf("starting client %d: %w", i, err)
	}
	s.clients[i] = c
	ctx, cancel := context.WithTimeout(ctx, initTimeout)
	defer cancel()
	reply, err := c.Do(ctx, client.Request{Op: client.Init, Setup: &client.Setup{
		Lock: s.run.lock.Name, Endpoints: s.cluster.Endpoints(i), Options: s.run.Scenario.Options,
		Seed: s.run.Variation.Seed(s.run.Seed) + uint64(i),
	}})
	if err != nil {
		return fmt.Errorf("setting up client %d: %w (%s)", i, err, s.run.records.logs())
	}
	if reply.Type != "ok" {
		return fmt.Errorf("setting up client %d: %s: %s", i, reply.Code, reply.Error)
	}
	return nil
}

// openFiles opens the records; the history's time 0 is now.
func (s *stage) openRecords() error {
	events, samples, err := s.run.records.open()
	if err != nil {
		return err
	}
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) }
	s.record = history.NewRecorder(events, clock)
	w, err := newWitness(s.cluster, newActiveKeys(s.run.params), samples, clock, s.run.Backend.Facts().Sampling)
	if err != nil {
		return err
	}
	s.witness = w
	w.changed = s.noteNodeChange
	s.record.OnEvent = func(e history.Event) {
		s.track.add(e)
		w.keys.add(e.Key, e.Time)
		if e.Process == history.Nemesis {
			w.noteFault(e.Time)
		}
	}
	s.nemesis = &nemesis{
		time:   s.run.Backend,
		env:    faults.Env{Cluster: s.cluster, Clients: s, Keys: s.run.params.KeyNames()},
		record: s.record, track: s.track, start: start, seed: s.run.Seed, maxDown: s.run.Scenario.Spare(),
	}
	return nil
}

// noteChange puts into the history what explains a run: a node that became
// master, one that went away, one that came back.
func (s *stage) noteNodeChange(old, now history.Sample) {
	v := &history.FaultValue{Phase: history.Noted, Target: now.Node}
	f := ""
	switch {
	case now.Up && now.Role == "master" && old.Role == "slave":
		f, v.Detail = promoted, now.Node+" says that it is master"
	case now.Up && now.Role == "slave" && old.Role == "master":
		f, v.Detail = "demoted", now.Node+" says that it is a replica"
	case old.Up && !now.Up:
		f, v.Detail = "silent", now.Node+" does not answer"
	case !old.Up && now.Up:
		f, v.Detail = "answers", now.Node+" answers again"
	default:
		return
	}
	s.record.Note(history.Nemesis, f, "", &history.Value{Fault: v})
}

// begin sets everything going.
func (s *stage) startWork() {
	r := s.run
	look, stopLooking := context.WithCancel(context.Background())
	calm, calmDown := context.WithCancel(context.Background())
	work, abandon := context.WithCancel(context.Background())
	s.stopWitness, s.stopFaults, s.cancelWork = stopLooking, calmDown, abandon
	guard := workloads.NewGuard(r.params.Fenced)
	row, _ := workloads.Lookup(r.params.Kind) // Fill has looked it up before
	for i, c := range s.clients {
		session := workloads.NewSession(c, s.record, i, r.params.Clients, r.Backend.Mono)
		session.AllowPause(r.longestPause())
		s.sessions = append(s.sessions, session)
		s.listeners.Go(session.Listen)
		env := workloads.Env{
			Params: r.params, Session: session, Guard: guard,
			Until: time.Now().Add(r.Scenario.Duration),
			Rand:  rand.New(rand.NewPCG(r.Variation.Seed(r.Seed), uint64(i)+0x10C5)),
		}
		mine := r.Backend.Actor(work, fmt.Sprintf("client-%d", i))
		s.loops.Go(func() {
			r.Backend.Turn(mine)
			if r.params.Begins(mine, s.stop, i) {
				row.Client(mine, s.stop, env)
			}
		})
	}
	s.observers.Go(func() { s.witness.run(look, r.Backend) })
	s.observers.Go(func() {
		defer close(s.faultsDone)
		s.nemesis.run(calm, r.plan)
	})
	go func() {
		s.loops.Wait()
		close(s.clientsDone)
	}()
}

// end lets the clients finish, and heals: first what they need in order to
// finish, then, when they have, the rest.
func (s *stage) endWork(ctx context.Context) {
	s.ended = true
	turn := s.run.Backend.Turn
	turn(ctx)
	close(s.stop)
	s.stopFaults()
	wait(s.faultsDone, healTimeout) // an injection that is under way has to be healed too
	s.nemesis.heal(context.WithoutCancel(ctx), false)
	p := s.run.params
	most := drainGrace + p.Hold + p.Jitter
	if !waitForClients(ctx, s.clientsDone, most) {
		s.cancelWork()
		wait(s.clientsDone, drainGrace)
	}
	turn(ctx)
	s.interrupted = ctx.Err() != nil
	s.nemesis.heal(context.WithoutCancel(ctx), true)
	turn(ctx)
	if !s.interrupted {
		s.finalChecks(ctx)
	}
}

// drained waits for done, but no longer than most, and not much longer than ctx.
func waitForClients(ctx context.Context, done <-chan struct{}, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return wait(done, interruptGrace)
	}
}

func (s *stage) recordError() error {
	return errors.Join(s.record.Err(), s.witness.err)
}

func wait(done <-chan struct{}, most time.Duration) bool {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// close ends everything that was started, in whatever state it is.
func (s *stage) close(ctx context.Context) error {
	most := closeTimeout
	if s.stopWitness == nil || s.interrupted {
		most = interruptGrace // nobody has to finish what he is doing
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if s.stopWitness != nil && !s.ended {
		s.endWork(ctx)
	}
	if s.cancelWork != nil {
		s.cancelWork()
	}
	for _, session := range s.sessions {
		session.Closing()
	}
	var all []error
	var wg sync.WaitGroup
	for i, c := range s.clients {
		if c == nil {
			continue
		}
		wg.Go(func() {
			_ = s.Continue(i)
			_ = c.Close(ctx) // one that will not close is killed; that is in its log
		})
	}
	wg.Wait()
	s.listeners.Wait()
	if s.stopWitness != nil {
		s.stopWitness()
		s.observers.Wait()
	}
	if s.cluster != nil {
		all = append(all, s.cluster.Close(ctx))
	}
	return errors.Join(append(all, s.run.records.close())...)
}

// Stop stops client i, as package faults asks.
func (s *stage) Stop(i int) error {
	c, err := s.stopper(i)
	if err != nil {
		return err
	}
	return c.Stop()
}

// Continue lets client i go on, as package faults asks.
func (s *stage) Continue(i int) error {
	c, err := s.stopper(i)
	if err != nil {
		return err
	}
	return c.Continue()
}

// Crash ends client i, as package faults asks. Its session finds it gone.
func (s *stage) Crash(i int) error {
	if i < 0 || i >= len(s.clients) {
		return fmt.Errorf("there is no client %d: the workload has %d", i, len(s.clients))
	}
	c, ok := s.clients[i].(client.Crasher)
	if !ok {
		return fmt.Errorf("client %d cannot be ended on this backend", i)
	}
	return c.Kill()
}

func (s *stage) stopper(i int) (client.Stopper, error) {
	if i < 0 || i >= len(s.clients) {
		return nil, fmt.Errorf("there is no client %d: the workload has %d", i, len(s.clients))
	}
	c, ok := s.clients[i].(client.Stopper)
	if !ok {
		return nil, fmt.Errorf("client %d cannot be stopped on this backend", i)
	}
	return c, nil
}
