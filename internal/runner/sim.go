package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/bubble"
	"github.com/lockchaos/lockchaos/scenarios"
)

// sim: servers, network and clients in this process, in virtual time. The lock's
// code is the real one, and so is go-redis; what they talk to is simulated.
var simSpec = BackendSpec{
	Name:    "sim",
	Doc:     "simulated servers and network in virtual time, the real lock code: the same seed makes the same history.",
	Missing: simMissing,
	New:     func(o BackendOptions) Backend { return NewSim(o.Stalled) },
	Flags:   noFlags,
}

func simMissing(s scenarios.Scenario) string {
	if client.Command(s.Lock) != nil {
		return "a client that is a program of its own lives in real time; take backend process"
	}
	if s.Requirements().Network {
		return "simulated servers have gates and no network that they could be taken off: take backend process or docker"
	}
	if err := bubble.Check(); err != nil {
		return err.Error()
	}
	return ""
}

// Sim is the backend sim. Its methods are those of a [Backend], and two more.
type Sim struct {
	cluster  *sim.Cluster // nil before Start
	epoch    time.Time    // of Mono
	virtual  time.Duration
	stalled  func(advice string)
	limit    time.Duration // see stalledAfter
	facts    Facts
	watchdog bubble.Watchdog
	trace    io.Writer // see sim.Config.Trace; nil: none
}

// NewSim returns a simulation that has not begun. See [BackendOptions] for stalled.
func NewSim(stalled func(advice string)) *Sim {
	if stalled == nil {
		stalled = func(advice string) { panic(advice) }
	}
	return &Sim{stalled: stalled, limit: stalledAfter, facts: Facts{Name: "sim", Deterministic: true}}
}

// simSamples is how often, at most, each node is sampled in a simulated run: a sample costs as much as a command,
// and explorations make thousands of runs.
const simSamples = 500

// stalledAfter is for how long, in real time, virtual time may stand still.
const stalledAfter = 10 * time.Second

// Mono is the time since the simulation began; never 0, which would mean that it is not known.
func (b *Sim) Mono() int64 { return int64(time.Since(b.epoch)) + 1 }

// Passed is the virtual time that the run took, once it is over.
func (b *Sim) Virtual() time.Duration { return b.virtual }

// Commands is how many commands the simulated servers have carried out.
func (b *Sim) Commands() int64 {
	if b.cluster == nil {
		return 0
	}
	return b.cluster.Commands()
}

// Facts is the Redis that is simulated, and how it is sampled.
func (b *Sim) Facts() Facts { return b.facts }

// interruptEvery is how often, in virtual time, it is looked whether the user has had enough.
const interruptEvery = 50 * time.Millisecond

// Live runs f in a bubble. A context from outside must not be waited for in
// there (time would stand still), so that f gets one of its own.
func (b *Sim) Live(outer context.Context, f func(ctx context.Context) error) error {
	watching, enough := context.WithCancel(context.Background())
	defer enough()
	go b.watchdog.Watch(watching, b.limit, func(s bubble.Stall) {
		if !s.Busy {
			b.stalled(s.Advice())
		}
	})
	var failed error
	err := bubble.Run(func() {
		begun := time.Now()
		ctx, cancel := context.WithCancel(context.Background())
		over, end := context.WithCancel(context.Background())
		var helpers sync.WaitGroup
		helpers.Go(func() { b.watchdog.Beat(over) })
		helpers.Go(func() { propagateCancel(over, outer, cancel) })
		failed = f(ctx)
		end()
		helpers.Wait()
		cancel()
		b.virtual = time.Since(begun)
	})
	return errors.Join(failed, err)
}

// follow cancels when outer has ended, until ctx ends.
func propagateCancel(ctx, outer context.Context, cancel func()) {
	tick := time.NewTicker(interruptEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if outer.Err() != nil {
				cancel()
			}
		}
	}
}

// Start starts the simulated servers.
func (b *Sim) Start(ctx context.Context, e RunEnv) (cluster.Cluster, error) {
	b.epoch = time.Now()
	seedLibraries(e.Seed)
	cfg := sim.Config{Seed: e.Seed, Topology: e.Topology, Actors: e.Clients, Trace: b.trace}
	if e.Priorities {
		cfg.Priorities = &sim.Priorities{Seed: e.Seed, Horizon: e.Duration}
	}
	c, err := sim.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	b.cluster = c
	b.facts.Delivery = c.Delivery()
	b.facts.Versions = map[string]string{"redis": "simulated, as " + c.Version()}
	b.facts.Sampling = Sampling{
		Every: max(sampleEvery, (e.Duration / simSamples).Truncate(time.Millisecond)), Thin: true,
	}
	return c, nil
}

// seedLibraries has the client libraries draw from the seed that take math/rand's
// own source: go-redis' cluster client chooses by it whom it asks for the slots.
// It has an effect where GODEBUG has randseednop=0, as it is in this module's go.mod.
func seedLibraries(seed uint64) {
	//lint:ignore SA1019 nothing else reaches a source that a library does not let be chosen
	rand.Seed(int64(seed))
}

// Client is client i in this process. Each of its two voices, the answers and
// the notices, has turns of its own.
func (b *Sim) Client(_ context.Context, e RunEnv, i int) (client.Client, error) {
	actor, teller := b.cluster.Client(i), b.cluster.Actor(fmt.Sprintf("notices-%d", i))
	c := &simClient{actor: actor}
	c.Local = client.NewLocal(b.Mono, client.Hooks{
		BeforeStep:   func() { actor.Gate(); actor.Turn() },
		BeforeNotice: func() { actor.Gate(); teller.Turn() },
	}, &e.Lock)
	return c, nil
}

type simClient struct {
	*client.Local
	actor *sim.Actor
}

// Do is recorded on both ends, so that it begins and ends when it is the client's turn.
func (c *simClient) Do(ctx context.Context, r client.Request) (client.Reply, error) {
	if r.Setup != nil {
		setup := *r.Setup
		setup.Dial = c.actor.Dial
		r.Setup = &setup
	}
	defer c.actor.Turn()
	return c.Local.Do(ctx, r)
}

func (c *simClient) Stop() error     { c.actor.Freeze(); return nil }
func (c *simClient) Continue() error { c.actor.Thaw(); return nil }
func (c *simClient) PID() int        { return 0 }

// Kill ends the client as a crash does.
func (c *simClient) Kill() error {
	c.actor.Crash()
	return c.Local.Kill()
}

// Lane is ctx with the actor of that name.
func (b *Sim) Actor(ctx context.Context, name string) context.Context {
	if b.cluster == nil {
		return ctx
	}
	return sim.With(ctx, b.cluster.Actor(name))
}

// Turn waits for the turn of the actor in ctx.
func (*Sim) Turn(ctx context.Context) {
	if a := sim.ActorOf(ctx); a != nil {
		a.Turn()
	}
}

var (
	_ Backend        = (*Sim)(nil)
	_ client.Stopper = (*simClient)(nil)
	_ client.Crasher = (*simClient)(nil)
)
