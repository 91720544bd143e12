package network

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Actor is a client, or a part of the harness. It has its own scheduler slot: a set of instants at which only its
// goroutines should act, so that the order in which Go runs the goroutines of different actors does not matter.
// Everything that reaches an actor over a connection reaches it in its slot, and sleeps of whole milliseconds keep it
// there. A goroutine that starts, or that another actor woke (by a channel or a mutex), calls [Actor.Turn] first.
//
// Its methods may be called from several goroutines.
type Actor struct {
	world  *World
	name   string
	slot   int
	narrow bool // one slot for all connections

	// Guarded by world.mu.
	dials    map[*Host]int
	frozen   bool
	dead     bool
	thawing  bool
	deferred Waiters // delivered when it thaws
	blocked  []blockedGoroutine
	follower masterFollower

	protected map[string]string // see zkFrames.rename: seeded names by the client's names, and back
}

// NewActor is an actor with that slot; narrow: all of its connections share the slot.
func NewActor(w *World, name string, slot int, narrow bool) *Actor {
	return &Actor{world: w, name: name, slot: slot, narrow: narrow, dials: map[*Host]int{}}
}

// Actor is the actor of that name: "client-0", or a part of the harness: main, plan, drawn, nemesis, witness, effect,
// heal, check, probe, guard, test, each also with a number ("effect-3", up to 1023 of effect and heal and 63 of the
// others); "notices-0" is for client 0's notices. Any other name shares one of 64 slots with names of the same
// hash.
func (w *World) Actor(name string) *Actor {
	if number, ok := strings.CutPrefix(strings.Replace(name, ":", "-", 1), "client-"); ok {
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(w.Clients) {
			return w.Clients[i]
		}
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	a := w.others[name]
	if a == nil {
		a = NewActor(w, name, w.Slots.named(name), true)
		w.others[name] = a
	}
	return a
}

// Name is "client:0" or the name that [World.Actor] was asked for.
func (a *Actor) Name() string { return a.name }

// Turn returns at the next instant of the actor's slot, strictly later than now.
func (a *Actor) Turn() {
	now := a.world.Now()
	time.Sleep(time.Duration(a.world.Slots.snap(now+1, a.slot) - now))
}

// Freeze stops the actor as SIGSTOP stops a process: its sends, dials, closes and reads wait, and nothing is delivered
// to it, until Thaw. Its goroutines may still run and its timers fire, but nothing leaves it; so every outcome is
// possible for a process all of whose goroutines were stopped before their next input or output.
func (a *Actor) Freeze() {
	a.world.Mu.Lock()
	defer a.world.Mu.Unlock()
	a.frozen, a.thawing = true, false
}

// Thaw resumes a frozen actor, at the next instant of its slot.
func (a *Actor) Thaw() {
	w := a.world
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if !a.frozen || a.thawing {
		return
	}
	a.thawing = true
	w.at(w.Slots.snap(w.Now()+1, a.slot), rank(a.slot, Forward), call(a.thawed))
}

// Crash ends the actor as SIGKILL ends a process: its connections are reset, messages in flight to it are lost, and it
// can no longer send or connect. Its goroutines see errors.
func (a *Actor) Crash() {
	w := a.world
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if a.dead {
		return
	}
	a.dead, a.frozen, a.thawing = true, false, false
	a.deferred = nil
	a.releaseBlocked()
	for _, h := range w.Hosts {
		caller := h.callers[a.name]
		if caller == nil {
			continue
		}
		for _, c := range append([]*Conn(nil), caller.Conns...) {
			near, f := c.Ends[0], &c.Flows[Back]
			c.Die(Forward)
			w.at(w.Slots.snap(w.Now()+1, f.slot), f.rank(), call(func() { near.Broken(syscall.ECONNABORTED) }))
		}
	}
}

// Revive lets a crashed actor connect and send again, as another process of its name. Goroutines of the
// dead process must not use it from then on.
func (a *Actor) Revive() {
	a.world.Mu.Lock()
	defer a.world.Mu.Unlock()
	a.dead, a.follower = false, masterFollower{}
}

func (a *Actor) thawed() {
	if !a.thawing {
		return // frozen again meanwhile
	}
	a.frozen, a.thawing = false, false
	a.deferred.Release()
	a.releaseBlocked()
}

// blockedGoroutine is a goroutine of a frozen actor that waits to resume, and the slot of its turn. If all resumed at
// one instant, Go would choose the order in which they get shared objects (a connection pool, a channel).
type blockedGoroutine struct {
	wake action
	slot int
}

// releaseBlocked resumes every blocked goroutine, each at its turn.
func (a *Actor) releaseBlocked() {
	w := a.world
	for _, s := range a.blocked {
		w.at(w.Slots.snap(w.Now()+1, s.slot), rank(s.slot, Back), s.wake)
	}
	a.blocked = nil
}

// AwaitThaw returns when the actor is not frozen.
func (a *Actor) AwaitThaw() {
	a.world.Mu.Lock()
	defer a.world.Mu.Unlock()
	a.awaitThaw(a.slot)
}

// awaitThaw is AwaitThaw with the world locked, for a goroutine with the turns of slot. The wait releases the lock
// meanwhile.
func (a *Actor) awaitThaw(slot int) {
	for a.frozen && !a.world.Closed {
		s := new(sleeper)
		s.init(a.world)
		a.blocked = append(a.blocked, blockedGoroutine{call(func() { a.world.wake(s) }), slot})
		a.world.wait(s)
	}
}

// Ready implements end.ready for the actor's ends.
func (a *Actor) Ready() (*Waiters, int64) {
	if a.frozen {
		return &a.deferred, 0
	}
	return nil, 0
}

// Order blocks until every other goroutine of this instant is blocked, then releases the actor's callers one after the
// other, sorted by server and then by command: shared objects (a connection pool, say) are used in the same order in
// every run. No virtual time passes. Call it before goroutines of one client compete for something.
func (a *Actor) Order(server string, command func() string) {
	w := a.world
	w.Mu.Lock()
	defer w.Mu.Unlock()
	a.order(server, command)
}

// order is Order with the world locked.
func (a *Actor) order(server string, command func() string) {
	o := &ordered{actor: a, server: server, command: command}
	o.init(a.world)
	a.world.at(a.world.Now(), rank(a.slot, Forward), o)
	for !o.granted && !a.world.Closed {
		a.world.wait(&o.sleeper)
	}
}

// ordered is a goroutine that waits in Order.
type ordered struct {
	sleeper
	actor   *Actor
	server  string
	command func() string // called only if another caller of the same instant has the same server
	text    string        // of command, once it was called
	granted bool
}

// compare orders callers of one instant.
func (o *ordered) compare(other *ordered) int {
	if c := cmp.Compare(o.server, other.server); c != 0 {
		return c
	}
	return cmp.Compare(o.key(), other.key())
}

func (o *ordered) key() string {
	if o.command != nil {
		o.text, o.command = o.command(), nil
	}
	return o.text
}

func (o *ordered) Fire() {
	if o.actor.frozen {
		o.actor.blocked = append(o.actor.blocked, blockedGoroutine{o, o.actor.slot})
		return
	}
	o.granted = true
	o.actor.world.wake(&o.sleeper)
}

// key is the key of an actor in a context.
type key struct{}

// With returns ctx with the slot of a: the harness's actions on the cluster under that context happen at instants of a.
func With(ctx context.Context, a *Actor) context.Context { return context.WithValue(ctx, key{}, a) }

// ActorOf is the actor that With put into ctx, nil if there is none.
func ActorOf(ctx context.Context) *Actor {
	a, _ := ctx.Value(key{}).(*Actor)
	return a
}

// Act locks the world at the next instant of the actor in ctx, for an action of that actor on servers. The caller
// unlocks.
func (w *World) Act(ctx context.Context) {
	a := ActorOf(ctx)
	if a == nil {
		a = w.Actor("unnamed")
	}
	a.Turn()
	w.Mu.Lock()
}
