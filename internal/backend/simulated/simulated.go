// Package simulated is the backend sim: servers, network and clients in this process, in virtual time. The lock and
// go-redis are the real code; the servers that they connect to are simulated.
package simulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/bubble"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Name is the name of the backend.
const Name = "sim"

// Spec is the row of the catalog of backends.
func Spec() backend.Spec {
	return backend.Spec{
		Name:    Name,
		Doc:     "simulated servers and network in virtual time, the real lock code: the same seed makes the same history.",
		Missing: missing,
		New:     func(o backend.Options) backend.Backend { return New(o) },
	}
}

func missing(s scenarios.Scenario) string {
	for _, name := range s.LockNames() {
		if row, err := adapters.Lookup(name); err == nil && row.Command != nil {
			return "a client that is a program of its own runs in real time; use backend process"
		}
	}
	if why := unknown(s.Topology); why != "" {
		return why
	}
	if s.Requirements().Network {
		return "simulated servers cannot be unplugged; use backend process or docker"
	}
	if err := bubble.Check(); err != nil {
		return err.Error()
	}
	return ""
}

// unknown returns why servers of topology t cannot be simulated; "" if they can.
func unknown(t cluster.Topology) string {
	if t.Redis() || t.Kind == cluster.ZooKeeper {
		return ""
	}
	return "there are no simulated servers of topology " + t.Kind + "; use backend process"
}

// Sim is the backend sim; see [New].
type Sim struct {
	Trace io.Writer     // see sim.Config.Trace; nil: none
	Limit time.Duration // how long, in real time, virtual time may take to advance

	cluster  *sim.Cluster // nil before Start
	epoch    time.Time    // of Mono
	virtual  time.Duration
	options  backend.Options
	facts    backend.Facts
	watchdog bubble.Watchdog
	lock     client.Spec

	abandoned atomic.Bool // a client could not be closed
}

// New returns a simulation that has not begun.
func New(o backend.Options) *Sim {
	if o.Stalled == nil {
		o.Stalled = func(advice string) { panic(advice) }
	}
	if o.Open == nil {
		o.Open = func(row client.Spec) client.Spec { return row }
	}
	return &Sim{options: o, Limit: stalledAfter, facts: backend.Facts{Name: Name, Deterministic: true}}
}

// simSamples is how often, at most, each node is sampled in a simulated run: a sample costs as much as a command,
// and explorations make thousands of runs.
const simSamples = 500

// stalledAfter is the limit of [New].
const stalledAfter = 10 * time.Second

// Mono is the time since the start of the simulation; never 0, which would mean unknown.
func (b *Sim) Mono() int64 { return int64(time.Since(b.epoch)) + 1 }

// Virtual is the duration of the run in virtual time, after its end.
func (b *Sim) Virtual() time.Duration { return b.virtual }

// Commands is the number of commands that the simulated servers have executed.
func (b *Sim) Commands() int64 {
	if b.cluster == nil {
		return 0
	}
	return b.cluster.Commands()
}

func (b *Sim) Facts() backend.Facts { return b.facts }

// simPassword is the password of simulated servers, as real ones have: a client that does not use it must not work
// here and fail there. It keeps nobody out.
const simPassword = "simulated"

// interruptEvery is how often, in virtual time, the context from outside is checked.
const interruptEvery = 50 * time.Millisecond

// Live runs f in a bubble, with a context of the bubble: virtual time does not advance while a goroutine waits for one
// from outside.
func (b *Sim) Live(outer context.Context, f func(ctx context.Context) error) error {
	watching, stop := context.WithCancel(context.Background())
	defer stop()
	go b.watchdog.Watch(watching, b.Limit, func(s bubble.Stall) {
		if !s.Busy {
			b.options.Stalled(s.Advice())
		}
	})
	var failed error
	err := bubble.Run(func() {
		start := time.Now()
		ctx, cancel := context.WithCancel(context.Background())
		running, end := context.WithCancel(context.Background())
		var helpers sync.WaitGroup
		helpers.Go(func() { b.watchdog.Beat(running) })
		helpers.Go(func() { propagateCancel(running, outer, cancel) })
		failed = f(ctx)
		end()
		helpers.Wait()
		cancel()
		b.virtual = time.Since(start)
	})
	if failed == nil && b.abandoned.Load() && errors.Is(err, bubble.ErrLeftBehind) {
		err = nil // the code of a lock never returned, which the history shows
	}
	return errors.Join(failed, err)
}

// propagateCancel calls cancel when outer ends before ctx.
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

// Start starts the simulated servers. The error wraps [cluster.ErrEnvironment] if there are none of the topology.
func (b *Sim) Start(ctx context.Context, e backend.Env) (cluster.Cluster, error) {
	if why := unknown(e.Topology); why != "" {
		return nil, fmt.Errorf("%w: %s", cluster.ErrEnvironment, why)
	}
	b.epoch = time.Now()
	b.lock = client.SharesInstances(b.options.Open(e.Lock))
	seedLibraries(e.Seed)
	cfg := sim.Config{Seed: e.Seed, Topology: e.Topology, Actors: e.Clients, Trace: b.Trace,
		Password: simPassword}
	if e.Priorities {
		cfg.Priorities = &network.Priorities{Seed: e.Seed, Horizon: e.Duration}
	}
	c, err := sim.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	b.cluster = c
	b.facts.Delivery = c.Delivery()
	b.facts.Versions = map[string]string{e.Topology.Software(): "simulated, as " + c.Version()}
	b.facts.Sampling = backend.Sampling{
		Every: max(backend.SampleEvery, (e.Duration / simSamples).Truncate(time.Millisecond)), Thin: true,
	}
	return c, nil
}

// seedLibraries seeds the global source of math/rand, with which go-redis' cluster client chooses the node that it
// asks for the slots. It needs GODEBUG=randseednop=0, which is in this module's go.mod.
func seedLibraries(seed uint64) {
	//nolint:staticcheck // SA1019: go-redis offers no other way to seed its source
	rand.Seed(int64(seed))
}

// Client is client i, in this process. Its replies and its notices have a scheduler slot each.
func (b *Sim) Client(_ context.Context, e backend.Env, i int) (client.Client, error) {
	row := b.lock
	if e.Lock.Name != row.Name {
		row = b.options.Open(e.Lock) // its clients share no object
	}
	actor, notices := b.cluster.Client(i), b.cluster.Actor(fmt.Sprintf("notices-%d", i))
	actor.Revive()
	c := &simClient{actor: actor, abandoned: &b.abandoned}
	c.Local = client.NewLocal(b.Mono, client.Hooks{
		// A lease may end at the instant of the step: its timer, and the goroutines it wakes, come first.
		BeforeStep:   func() { actor.AwaitThaw(); actor.Turn(); actor.Order("", nil) },
		BeforeNotice: func() { actor.AwaitThaw(); notices.Turn() },
		AfterTimeout: func() { notices.Order("", nil) }, // also while the client is stopped
	}, row)
	return c, nil
}

type simClient struct {
	*client.Local
	actor     *network.Actor
	abandoned *atomic.Bool // see Sim
	killed    atomic.Bool  // another process may have its actor by now
}

// Close notes that the lock does not return.
func (c *simClient) Close(ctx context.Context) error {
	err := c.Local.Close(ctx)
	if err != nil {
		c.abandoned.Store(true)
	}
	return err
}

// Do begins and ends in the scheduler slot of the client, because both ends are recorded.
func (c *simClient) Do(ctx context.Context, r client.Request) (client.Reply, error) {
	if r.Setup != nil {
		setup := *r.Setup
		setup.Dial, setup.Order = c.dial, c.actor.Order
		r.Setup = &setup
	}
	defer c.actor.Turn()
	return c.Local.Do(ctx, r)
}

// dial connects, unless the process is dead.
func (c *simClient) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if c.killed.Load() {
		return nil, net.ErrClosed
	}
	return c.actor.Dial(ctx, network, addr)
}

func (c *simClient) Stop() error     { c.actor.Freeze(); return nil }
func (c *simClient) Continue() error { c.actor.Thaw(); return nil }
func (c *simClient) PID() int        { return 0 }

// Kill implements [client.Crasher].
func (c *simClient) Kill() error {
	if c.killed.CompareAndSwap(false, true) {
		c.actor.Crash()
	}
	return c.Local.Kill()
}

// Actor implements [backend.Time].
func (b *Sim) Actor(ctx context.Context, name string) context.Context {
	if b.cluster == nil {
		return ctx
	}
	return network.With(ctx, b.cluster.Actor(name))
}

// Turn implements [backend.Time].
func (*Sim) Turn(ctx context.Context) {
	if a := network.ActorOf(ctx); a != nil {
		a.Turn()
	}
}

var (
	_ backend.Backend = (*Sim)(nil)
	_ client.Stopper  = (*simClient)(nil)
	_ client.Crasher  = (*simClient)(nil)
)
