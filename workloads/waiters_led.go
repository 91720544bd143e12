package workloads

import (
	"math/rand/v2"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// This file is about the rounds of workload waiters in which one client leads: it takes a key before all others, in a
// way that excludes them, and they come while it holds it; or, where others can share, they come first, and it waits
// for them while more come.

// roundKind is what happens in a round.
type roundKind int

const (
	noLeader  roundKind = iota
	lateLeads           // the leader comes after others, which share the lock
	releases            // the leader holds all of the lock, and releases it
	expires             // its lease ends
	isForced            // it is released by force
	admits              // it admits others while it keeps a part
	squeezed            // one permit becomes free while the first waiter wants all
	deserted            // the first waiters leave when it is released to them
	lapses              // several share the lock, and their leases end one after the other
)

// ledRound is a round with a leader.
type ledRound struct {
	kind      roundKind
	place     int  // how many clients come before this one, in a circle that begins at the leader
	straggled bool // some come long after the others
	together  bool // all come at once: their order at the server may differ from that in a program of several
	kept      bool // sharers keep the lock long enough to expose waiters that were not woken

	lease     time.Duration // of a leader that does not release
	forsaken  bool          // the first waiter, who knows when that lease ends, leaves just before
	succeeded bool          // after a forced release a reader leaves its hold to a short lease, and a writer waits for it
}

// leads reports whether this client leads.
func (r ledRound) leads() bool { return r.place == 0 }

// roundKinds are the kinds of round that the lock can have.
func (m *mix) roundKinds() []roundKind {
	list := []roundKind{noLeader, releases, deserted}
	for _, row := range []struct {
		kind roundKind
		can  bool
	}{
		{lateLeads, m.shares()},
		{expires, m.Can.Has(client.ReportsLoss)},
		// Of a forced release it is not known which of several holders it meets.
		{isForced, m.Can.Has(client.CanForceRelease) && !m.Can.Has(client.HasPermits)},
		{admits, m.Can.Has(client.CanDowngrade) || m.Can.Has(client.CanResize)},
		{squeezed, m.Can.Has(client.HasPermits) && m.limit() > 1},
		{lapses, m.Can.Has(client.ReportsLoss) &&
			(m.Can.Has(client.SharesReads) || m.Can.Has(client.HasPermits) && m.limit() > 1)},
	} {
		if row.can {
			list = append(list, row.kind)
		}
	}
	return list
}

// joinRound draws the round, which is the same for all clients; false: it has no leader. A kind of round comes again
// when all others were drawn, so that a short run has many of them.
func (m *mix) joinRound() (r ledRound, led bool) {
	if m.Can.Has(client.IsLatch) {
		return r, false
	}
	n, kinds := uint64((time.Until(m.Until)-1)/m.round()), m.roundKinds()
	among := uint64(len(kinds))
	r.kind = kinds[rand.New(rand.NewPCG(m.Seed, n/among)).Perm(len(kinds))[n%among]]
	if r.kind == noLeader {
		return r, false
	}
	all := rand.New(rand.NewPCG(m.Seed, ^n))
	m.key = m.keys[all.IntN(len(m.keys))]
	r.place = (m.Session.Number() + all.IntN(m.Params.Clients)) % m.Params.Clients
	r.straggled, r.kept = all.IntN(2) == 0, all.IntN(2) == 0
	r.together = !r.straggled && all.IntN(2) == 0
	r.lease = 500*time.Millisecond + time.Duration(all.IntN(400))*time.Millisecond
	if m.Can.Has(client.Fair) {
		r.lease += queueInterval
	}
	r.forsaken = r.kind == expires && all.IntN(2) == 0
	r.succeeded = r.kind == isForced && m.Can.Has(client.SharesReads, client.ReportsLoss) && all.IntN(2) == 0
	return r, true
}

// shares reports whether several owners may hold the lock at once.
func (m *mix) shares() bool { return m.Can.Has(client.SharesReads) || m.Can.Has(client.HasPermits) }

// beyondQueue is after how long a request certainly stands in a queue (checker.Options.QueueDelay).
const beyondQueue = 600 * time.Millisecond

// takePartLed is the part of a client in a round with a leader.
func (m *mix) takePartLed(r ledRound) {
	switch {
	case r.kind == squeezed:
		m.squeeze(r)
	case r.kind == deserted:
		m.desert(r)
	case r.kind == lapses:
		m.lapse(r)
	case r.forsaken && r.place == 1:
		m.forsake(r)
	case r.succeeded && !r.leads():
		m.succeed(r)
	case r.kind == lateLeads && r.leads():
		m.pause(2 * m.Params.Hold)
		m.wantAll()
	case r.kind == lateLeads:
		m.share()
	case r.leads():
		m.lead(r)
	default:
		if m.pause(2 * m.Params.Hold); !r.together {
			m.pause(random(m.Env, m.Params.Hold))
		}
		m.straggle(r)
		m.trySeveral()
		m.follow(r.kept)
	}
}

// straggle comes long after the others, some of the time.
func (m *mix) straggle(r ledRound) {
	if r.straggled && m.chance(3) {
		m.pause(beyondQueue + random(m.Env, beyondQueue))
	}
}

// squeeze is a round in which a single permit is released while the first waiter wants all: it is of use only to those
// behind it, if the lock lets them pass.
func (m *mix) squeeze(r ledRound) {
	a := m.patient(m.writes())
	keep := grain + random(m.Env, m.Params.Hold)
	switch {
	case r.leads():
		a.Permits--
		keep = 2*beyondSlack + beyondQueue
	case r.place == 1:
		m.pause(m.Params.Hold)
		a.Permits = 1
		keep = 8 * m.Params.Hold
	case r.place == 2:
		m.pause(3 * m.Params.Hold)
	default:
		m.pause(4*m.Params.Hold + random(m.Env, m.Params.Hold))
		m.straggle(r)
		a.Permits = 1
	}
	m.use(a, func() { m.pause(keep) })
}

// smaller is a request that leaves room for others, if the lock can be shared.
func (m *mix) smaller() client.Acquire {
	a := m.patient(m.writes())
	switch {
	case m.Can.Has(client.SharesReads):
		a.Mode = "read"
	case m.Can.Has(client.HasPermits):
		a.Permits = 1 + m.Rand.IntN((m.limit()+1)/2)
	}
	return a
}

// trySeveral sometimes tries to get several locks, of which the leader or nobody has the last.
func (m *mix) trySeveral() {
	if !m.Can.Has(client.SeveralKeys, client.CanTry) || len(m.keys) < 2 || !m.chance(3) {
		return
	}
	m.release(m.try(m.several(m.writes())))
}

// follow waits for the leader. A client that shares the lock often keeps it for long; with always, it always does.
func (m *mix) follow(always bool) {
	a := m.smaller()
	if m.chance(5) {
		m.giveUp(a)
		return
	}
	m.use(a, func() {
		switch m.wait(); {
		case m.shares() && always:
			m.pause(beyondSlack + 2*m.Params.Hold)
		case m.shares() && m.chance(2):
			m.pause(beyondSlack + random(m.Env, time.Second))
		}
	})
}

// share takes a part of the lock and keeps it while the leader waits for all of it; or comes only then.
func (m *mix) share() {
	if m.pause(random(m.Env, m.Params.Hold)); m.chance(2) {
		m.pause(beyondQueue + 2*m.Params.Hold + random(m.Env, beyondQueue))
	}
	m.use(m.smaller(), func() { m.pause(2*beyondSlack + random(m.Env, beyondQueue)) })
}

// wantAll waits for all of the lock while others share it, and gives up half of the time.
func (m *mix) wantAll() {
	a := m.patient(m.writes())
	if m.chance(2) {
		a.Wait = beyondQueue + random(m.Env, beyondQueue)
	}
	m.use(a, m.wait)
}

// lead takes all of the lock and keeps it until the others have come. Then it releases it, it does so by force, its
// lease ends, or it admits others while it keeps a part.
func (m *mix) lead(r ledRound) {
	a, kind := m.patient(m.writes()), r.kind
	switch {
	case kind == admits && m.Can.Has(client.CanDowngrade):
		m.admitReaders(a)
		return
	case kind == admits:
		m.admitMore(a)
		return
	case kind != isForced && m.Can.Has(client.SeveralKeys) && len(m.keys) > 1 && m.chance(2):
		a = m.several(a)
	}
	if kind == expires {
		a.Lease = r.lease
	}
	h := m.await(a)
	if !h.held() {
		return
	}
	granted := time.Now()
	switch m.pause(3 * m.Params.Hold); {
	case r.forsaken:
	case kind == expires:
		m.pause((a.Lease - time.Since(granted)).Truncate(grain) - 2*grain)
		m.barge()
	case kind == isForced:
		if m.chance(2) {
			m.pause(beyondQueue)
		}
		m.countWaiters()
		if m.Session.ForceRelease(m.ctx, m.key).Outcome != history.OK { // it may still have the lock
			m.release(h)
		}
	default:
		if m.chance(2) {
			m.pause(2 * beyondQueue)
		}
		m.countWaiters()
		m.release(h)
	}
}

// succeed is the part of the others in a round in which the leader's hold is released by force: they read, the first of
// them leaves its hold to a short lease, and the second comes then and waits to write. That lease must not count for
// longer because that of the leader would have lasted longer.
func (m *mix) succeed(r ledRound) {
	m.pause(2*m.Params.Hold + time.Duration(r.place)*apart)
	a := m.smaller()
	switch r.place {
	case 1:
		a.Lease = r.lease + beyondQueue // it may not have begun when the second comes
		m.Session.Acquire(m.ctx, a)
		return
	case 2:
		m.pause(2*m.Params.Hold + beyondQueue)
		a = m.patient(m.writing(a.Owner, m.lease()))
	}
	m.use(a, m.wait)
}

// beyondDeath is the time after which a dead waiter must no longer be counted.
const beyondDeath = 7 * time.Second

// countWaiters counts those who wait for what the leader holds, in a long round for so long that those who have died
// must no longer be counted.
func (m *mix) countWaiters() {
	if !m.Can.Has(client.CountsWaiters) {
		return
	}
	m.Session.CountWaiters(m.ctx, m.key)
	if m.round() > beyondDeath+defaultRound {
		m.pause(beyondDeath + random(m.Env, time.Second))
		m.Session.CountWaiters(m.ctx, m.key)
	}
}

// barge requests the lock again and again while its lease ends: others have waited for that.
func (m *mix) barge() {
	for range 6 {
		var h Hold
		ok := false
		if m.pause(grain); m.Can.Has(client.CanTry) && m.chance(2) {
			var answer Answer
			h, answer = m.Session.Try(m.ctx, m.writes())
			ok = answer.Outcome == history.OK
		} else {
			a := m.writes()
			a.Wait = grain
			var outcome history.Type
			if h, outcome = m.Session.Acquire(m.ctx, a); outcome == history.Info {
				return
			}
			ok = outcome == history.OK
		}
		if ok {
			m.wait()
			m.release(h)
			return
		}
	}
}

// admitReaders holds the lock for writing until the others wait, and then for reading, long enough to show readers that
// were not woken.
func (m *mix) admitReaders(a client.Acquire) {
	write := m.await(a)
	if !write.held() {
		return
	}
	m.pause(4 * m.Params.Hold)
	a.Mode = "read"
	read := m.try(a)
	if m.release(write); read.held() {
		m.pause(2 * beyondSlack)
		m.release(read)
	}
}

// admitMore shrinks a semaphore to the permits that it holds until the others wait, and then restores its size.
func (m *mix) admitMore(a client.Acquire) {
	some := (m.limit() + 1) / 2
	if m.Session.Resize(m.ctx, m.key, some).Outcome != history.OK {
		return
	}
	a.Permits = some
	h := m.await(m.patient(a))
	m.pause(4 * m.Params.Hold)
	if m.grow(some); h.held() {
		m.pause(2 * beyondSlack)
		m.release(h)
	}
}

// grow gives a semaphore its usual size, of which it has some permits.
func (m *mix) grow(some int) {
	more := m.limit() - some
	if more > 0 && m.Can.Has(client.CanChangePermits) && m.chance(2) &&
		m.Session.ChangePermits(m.ctx, m.key, more).Outcome == history.OK {
		return
	}
	m.Session.Resize(m.ctx, m.key, m.limit())
}
