package workloads

import (
	"cmp"
	"context"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// waiters tests who is woken. All clients request the lock at the start of each round, wait, hold it, give up or let a
// lease end, and do nothing for the rest of the round: no other request can serve a waiter that the lock forgot.
var waitersSpec = Spec{
	Name: "waiters",
	Doc: "in rounds, one every think time, all clients request the lock: some hold it, some give up while they wait, " +
		"some let their lease end. In most rounds one client leads: the others arrive while it holds the lock, or it waits " +
		"for them; in one kind of round the first waiters leave just as it releases the lock. " +
		"Then no client sends a request until the next round: only the lock can wake waiters.",
	Source: "redisson#4744, redisson#2714; java.util.concurrent's tests of AbstractQueuedSynchronizer",
	Uses: client.Capabilities{client.CanTry, client.Reentrant, client.SharesReads, client.CanDowngrade, client.HasPermits,
		client.CanResize, client.CanChangePermits, client.SeveralKeys, client.ReportsLoss, client.IsLatch,
		client.CanForceRelease, client.CanDelete, client.CountsWaiters},
	Client: waitersClient,
}

// defaultRound is the length of a round if the workload has no think time.
const defaultRound = 4 * time.Second

// queueInterval is how often, at least, a waiter in a queue at a server should ask for its place: leases that are
// shorter may end unnoticed for as long.
const queueInterval = 2 * time.Second

func waitersClient(ctx context.Context, stop <-chan struct{}, e Env) {
	m := &mix{Env: e, ctx: ctx, stop: stop, keys: e.Params.sharedKeys()}
	takePart := m.takePart
	if e.Can.Has(client.IsLatch) {
		takePart = m.awaitLatch
	}
	m.watch()
	defer m.Session.awaitEnds(ctx)
	for !m.over() {
		if r, led := m.joinRound(); led {
			m.takePartLed(r)
		} else {
			m.key = m.keys[e.Rand.IntN(len(m.keys))]
			m.pause(random(e, e.Params.Hold))
			takePart()
		}
		m.awaitRound()
	}
}

// awaitRound waits for the next round, which begins for all clients within the same millisecond: clients keep their
// scheduler slots.
func (m *mix) awaitRound() {
	pause(m.ctx, m.stop, (time.Until(m.Until)%m.round()).Truncate(grain)+grain)
}

// round is the length of a round.
func (m *mix) round() time.Duration { return cmp.Or(m.Params.Think, defaultRound) }

// takePart is the part of a client in one round.
func (m *mix) takePart() {
	a := m.patient(m.writes())
	switch {
	case m.Can.Has(client.SharesReads) && m.chance(2):
		a.Mode = "read"
	case m.Can.Has(client.HasPermits):
		a.Permits = 1 + m.Rand.IntN(m.limit())
	case m.Can.Has(client.SeveralKeys) && len(m.keys) > 1 && !m.chance(3):
		a = m.several(a)
	}
	switch m.Rand.IntN(8) {
	case 0, 1:
		m.giveUp(a)
	case 2:
		m.forget(a)
	case 7:
		m.takeAway(a)
	case 3:
		m.nest(a)
	case 4:
		m.change(a)
	default:
		m.hold(a)
	}
}

// hold waits until it is served.
func (m *mix) hold(a client.Acquire) { m.use(a, m.keep) }

// keep is for how long a lock is held. If others may hold it as well, it is sometimes so long that those who could
// should be served before it ends.
func (m *mix) keep() {
	shared := m.Can.Has(client.SharesReads) || m.Can.Has(client.HasPermits)
	if m.wait(); shared && m.chance(3) {
		m.pause(beyondSlack + random(m.Env, time.Second))
	}
}

// change admits others while it holds the lock: a writer becomes a reader, or a semaphore that was made smaller gets
// its permits back.
func (m *mix) change(a client.Acquire) {
	switch {
	case m.Can.Has(client.CanDowngrade):
		a.Mode = "write"
		write := m.await(a)
		if !write.held() {
			return
		}
		a.Mode, a.Wait = "read", grain
		read := m.try(a)
		m.wait()
		if m.release(write); read.held() {
			m.keep()
			m.release(read)
		}
	case m.Can.Has(client.CanResize):
		m.Session.Resize(m.ctx, m.key, a.Permits)
		h := m.try(a)
		m.wait()
		if m.Session.Resize(m.ctx, m.key, m.limit()); h.held() {
			m.keep()
			m.release(h)
		}
	default:
		m.hold(a)
	}
}

// giveUp waits for about as long as some others hold, once or twice, or only tries.
func (m *mix) giveUp(a client.Acquire) {
	for range 1 + m.Rand.IntN(2) {
		var h Hold
		var outcome history.Type
		if a.Wait = grain + random(m.Env, 4*m.Params.Hold); m.Can.Has(client.CanTry) && m.chance(4) {
			var answer Answer
			h, answer = m.Session.Try(m.ctx, a)
			outcome = answer.Outcome
		} else {
			h, outcome = m.Session.Acquire(m.ctx, a)
		}
		if outcome == history.OK {
			m.wait()
			m.release(h)
		}
		if a.Owner = m.owner(); outcome == history.Info {
			return
		}
	}
}

// forget does not release: the others have to wait for the end of the lease, and no longer.
func (m *mix) forget(a client.Acquire) {
	if a.Lease == 0 || !m.knowsLosses() {
		m.hold(a)
		return
	}
	if a.Lease = 300*time.Millisecond + m.short(); m.Can.Has(client.Fair) {
		a.Lease += queueInterval
	}
	m.Session.Acquire(m.ctx, a)
}

// takeAway releases its hold by force, which must wake a waiter too. On a quorum, whose locks wake nobody, it might
// also take votes from the next holder; at a semaphore, permits from others.
func (m *mix) takeAway(a client.Acquire) {
	if !m.Can.Has(client.CanForceRelease, client.Wakes) || m.Can.Has(client.HasPermits) || a.Mode == "read" {
		m.hold(a)
		return
	}
	if h := m.await(a); h.held() {
		m.wait()
		m.Session.ForceRelease(m.ctx, m.key)
	}
}

// nest acquires twice; the inner release must wake nobody, and the outer one a waiter.
func (m *mix) nest(a client.Acquire) {
	if !m.Can.Has(client.Reentrant) {
		m.hold(a)
		return
	}
	h := m.await(a)
	if !h.held() {
		return
	}
	a.Wait = grain + random(m.Env, m.Params.Hold)
	inner := m.await(a)
	if m.wait(); inner.held() {
		m.release(inner)
		m.wait()
	}
	m.release(h)
}

// awaitLatch waits for a latch, or opens or deletes it while the others wait.
func (m *mix) awaitLatch() {
	m.Session.Arm(m.ctx, m.key, 1)
	if !m.chance(4) {
		m.Session.Await(m.ctx, m.key, 0, m.Env.wait())
		return
	}
	m.pause(2*m.Params.Hold + beyondSlack)
	if m.Can.Has(client.CanDelete) && m.chance(3) {
		m.Session.Delete(m.ctx, m.key)
		return
	}
	m.Session.CountDown(m.ctx, m.key, m.owner(), 0)
	if m.chance(2) {
		m.Session.Arm(m.ctx, m.key, 1) // those who wait have waited for the one before
	}
}
