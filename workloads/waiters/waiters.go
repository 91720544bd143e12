// Package waiters is the workload in which all clients request the lock at the same time and then wait: it shows
// waiters that a lock forgets to wake. It is not a promise.
package waiters

import (
	"cmp"
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// Spec is the row of the catalog. The workload tests who is woken. All clients request the lock at the start of each
// round, wait, hold it, give up or let a lease end, and do nothing for the rest of the round: no other request can
// serve a waiter that the lock forgot.
func Spec() workload.Spec {
	return workload.Spec{
		Name: workload.Waiters,
		Doc: "in rounds, one every think time, all clients request the lock: some hold it, some give up while they wait, " +
			"some let their lease end. In most rounds one client leads: the others arrive while it holds the lock, or it " +
			"waits for them; in one kind of round the first waiters leave just as it releases the lock. " +
			"Then no client sends a request until the next round: only the lock can wake waiters.",
		Source: "redisson#4744, redisson#2714; java.util.concurrent's tests of AbstractQueuedSynchronizer",
		Uses: promise.Try | promise.Reentrant | promise.ReadWrite | promise.Downgrade | promise.Permits |
			promise.ManagesPermits | promise.MultiKey | promise.ReportsLoss | promise.Latch | promise.ForceRelease |
			promise.CountWaiters,
		Client: run,
	}
}

// defaultRound is the length of a round if the workload has no think time.
const defaultRound = 4 * time.Second

// queueInterval is how often, at least, a waiter in a queue at a server should ask for its place: leases that are
// shorter may end unnoticed for as long.
const queueInterval = 2 * time.Second

// contender is one client of the workload.
type contender struct{ workload.Actor }

func run(ctx context.Context, stop <-chan struct{}, e workload.Env) {
	c := &contender{Actor: workload.NewActor(ctx, stop, e)}
	takePart := c.takePart
	if e.Can.Has(promise.Latch) {
		takePart = c.awaitLatch
	}
	c.WatchValidity()
	defer c.Session.AwaitEnds(ctx)
	for !c.Over() {
		if r, led := c.joinRound(); led {
			c.takePartLed(r)
		} else {
			c.Key = c.Keys[e.Rand.IntN(len(c.Keys))]
			c.Pause(e.Random(e.Params.Hold))
			takePart()
		}
		c.awaitRound()
	}
}

// awaitRound waits for the next round, which begins for all clients within the same millisecond: clients keep their
// scheduler slots.
func (c *contender) awaitRound() {
	workload.Pause(c.Context, c.Stop, (c.Left()%c.round()).Truncate(workload.Grain)+workload.Grain)
}

// round is the length of a round.
func (c *contender) round() time.Duration { return cmp.Or(c.Params.Think, defaultRound) }

// takePart is the part of a client in one round.
func (c *contender) takePart() {
	a := c.Patient(c.NewWrite())
	switch {
	case c.Can.Has(promise.ReadWrite) && c.Chance(2):
		a.Mode = "read"
	case c.Can.Has(promise.Permits):
		a.Permits = 1 + c.Rand.IntN(c.Limit())
	case c.Can.Has(promise.MultiKey) && len(c.Keys) > 1 && !c.Chance(3):
		a = c.Several(a)
	}
	switch c.Rand.IntN(8) {
	case 0, 1:
		c.giveUp(a)
	case 2:
		c.forget(a)
	case 7:
		c.takeAway(a)
	case 3:
		c.nest(a)
	case 4:
		c.change(a)
	default:
		c.hold(a)
	}
}

// hold waits until it is served.
func (c *contender) hold(a client.Acquire) { c.Use(a, c.keep) }

// keep is for how long a lock is held. If others may hold it as well, it is sometimes so long that other possible
// holders should be served before it ends.
func (c *contender) keep() {
	shared := c.Can.Has(promise.ReadWrite) || c.Can.Has(promise.Permits)
	if c.PauseInHold(); shared && c.Chance(3) {
		c.Pause(workload.BeyondSlack + c.Random(time.Second))
	}
}

// change admits others while it holds the lock: a writer becomes a reader, or a semaphore that was made smaller gets
// its permits back.
func (c *contender) change(a client.Acquire) {
	switch {
	case c.Can.Has(promise.Downgrade):
		a.Mode = "write"
		write := c.Await(a)
		if !write.Granted() {
			return
		}
		a.Mode, a.Wait = "read", workload.Grain
		read := c.Try(a)
		c.PauseInHold()
		if c.Release(write); read.Granted() {
			c.keep()
			c.Release(read)
		}
	case c.Can.Has(promise.ManagesPermits):
		c.Session.Resize(c.Context, c.Key, a.Permits)
		h := c.Try(a)
		c.PauseInHold()
		if c.Session.Resize(c.Context, c.Key, c.Limit()); h.Granted() {
			c.keep()
			c.Release(h)
		}
	default:
		c.hold(a)
	}
}

// giveUp waits for about as long as some others hold, once or twice, or only tries.
func (c *contender) giveUp(a client.Acquire) {
	for range 1 + c.Rand.IntN(2) {
		var h session.Hold
		var outcome history.Type
		if a.Wait = workload.Grain + c.Random(4*c.Params.Hold); c.Can.Has(promise.Try) && c.Chance(4) {
			var answer session.Answer
			h, answer = c.Session.Try(c.Context, a)
			outcome = answer.Outcome
		} else {
			h, outcome = c.Session.Acquire(c.Context, a)
		}
		if outcome == history.OK {
			c.PauseInHold()
			c.Release(h)
		}
		if a.Owner = c.NewOwner(); outcome == history.Info {
			return
		}
	}
}

// forget does not release: the others have to wait for the end of the lease, and no longer.
func (c *contender) forget(a client.Acquire) {
	if a.Lease == 0 || !c.KnowsLosses() {
		c.hold(a)
		return
	}
	if a.Lease = 300*time.Millisecond + c.ShortLease(); c.Can.Has(promise.Fair) {
		a.Lease += queueInterval
	}
	h := c.Await(a)
	c.ReleaseRenewed(h, time.Now())
}

// takeAway releases its hold by force, which must wake a waiter too. On a quorum, whose locks wake nobody, it might
// also take votes from the next holder; at a semaphore, permits from others.
func (c *contender) takeAway(a client.Acquire) {
	if !c.Can.Has(promise.ForceRelease|promise.Wakes) || c.Can.Has(promise.Permits) || a.Mode == "read" {
		c.hold(a)
		return
	}
	if h := c.Await(a); h.Granted() {
		c.PauseInHold()
		c.force(h)
	}
}

// force releases a hold by force, and as its owner if that has failed: it may still have the lock.
func (c *contender) force(h session.Hold) {
	if c.Session.ForceRelease(c.Context, h.Key).Outcome != history.OK {
		c.Release(h)
	}
}

// nest acquires twice; the inner release must wake nobody, and the outer one a waiter.
func (c *contender) nest(a client.Acquire) {
	if !c.Can.Has(promise.Reentrant) {
		c.hold(a)
		return
	}
	h := c.Await(a)
	if !h.Granted() {
		return
	}
	a.Wait = workload.Grain + c.Random(c.Params.Hold)
	inner := c.Await(a)
	if c.PauseInHold(); inner.Granted() {
		c.Release(inner)
		c.PauseInHold()
	}
	c.Release(h)
}

// awaitLatch waits for a latch, or opens or deletes it while the others wait.
func (c *contender) awaitLatch() {
	c.Session.Arm(c.Context, c.Key, 1)
	if !c.Chance(4) {
		c.Session.Await(c.Context, c.Key, 0, c.AcquireTimeout())
		return
	}
	c.Pause(2*c.Params.Hold + workload.BeyondSlack)
	if c.Can.Has(promise.Latch) && c.Chance(3) {
		c.Session.Delete(c.Context, c.Key)
		return
	}
	c.Session.CountDown(c.Context, c.Key, c.NewOwner(), 0)
	if c.Chance(2) {
		c.Session.Arm(c.Context, c.Key, 1) // the waiters have waited for the one before
	}
}
