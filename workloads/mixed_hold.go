package workloads

import (
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// holdSequences are about acquiring.
func holdSequences() []sequence {
	return []sequence{
		{name: "plain", run: plain},
		{name: "nested", needs: client.Capabilities{client.Reentrant}, run: nested},
		{name: "nested leases", needs: client.Capabilities{client.Reentrant, client.ReportsLoss},
			run: holding((*mix).brief, nestedLeases)},
		{name: "to the end", needs: client.Capabilities{client.ReportsLoss}, run: toTheEnd},
		{name: "refused re-entry", needs: client.Capabilities{client.RefusesReentry}, run: refusedReentry},
		{name: "tries", needs: client.Capabilities{client.CanTry}, run: tries},
		{name: "short waits", run: shortWaits},
	}
}

// plain is the common use.
func plain(m *mix) {
	holding((*mix).asks, func(m *mix, h Hold) {
		m.work(h)
		m.visit()
		m.release(h)
		if m.key == m.own {
			m.visit() // it is free now
		}
	})(m)
}

// maxDepth is how often an owner holds a lock at the same time.
const maxDepth = 3

// nested acquires the lock up to three times for one owner, with leases of different length, and visits it for
// another owner at every depth on the way out.
func nested(m *mix) {
	holds := m.enterNested(m.asks(), m.wait)
	for n := len(holds) - 1; n >= 0; n-- {
		m.visit()
		if !m.leave(holds[n]) {
			return
		}
		m.wait()
	}
}

// enterNested acquires the lock two or three times for one owner, with leases of different length, and calls each after
// every grant. It returns what was granted, the outermost first.
func (m *mix) enterNested(a client.Acquire, each func()) (holds []Hold) {
	for range 2 + m.Rand.IntN(maxDepth-1) {
		h := m.enter(a)
		if !h.held() {
			break
		}
		holds = append(holds, h)
		if a.Lease > 0 {
			a.Lease = m.otherLease(m.Params.Lease)
		}
		each()
	}
	return holds
}

// leave releases one of several holds of an owner, if it is one. After an unknown outcome the owner is left alone: the
// reply to the next release might be that to this one.
func (m *mix) leave(h Hold) (known bool) {
	return !h.held() || m.Session.Release(m.ctx, h).Outcome != history.Info
}

// nestedLeases acquires a held lock again for a shorter lease, perhaps renews the inner hold by hand, and releases it
// before its lease ends. The outer hold must last longer.
func nestedLeases(m *mix, outer Hold) {
	a := m.again(outer)
	a.Lease = (outer.Lease / 3).Truncate(grain)
	if inner := m.try(a); inner.held() {
		if m.Can.Has(client.CanRenew) && m.chance(2) {
			m.Session.Renew(m.ctx, inner, a.Lease)
		}
		m.visit()
		if !m.leave(inner) {
			return
		}
	}
	m.pause((outer.Lease * 3 / 5).Truncate(grain))
	m.visit()
	m.release(outer)
}

// toTheEnd holds until the end of the lease, and visits the lock for another owner shortly before, and a moment before
// the validity ends: even a server whose clock is slightly fast must still have the lock then.
func toTheEnd(m *mix) {
	lease := 2 * m.short()
	if m.chance(2) {
		lease += time.Second
	}
	h := m.acquire(m.request(m.owner(), lease))
	if !h.held() {
		return
	}
	granted := time.Now()
	m.pause((lease * 4 / 5).Truncate(grain))
	m.visit()
	if left := (h.Valid - time.Since(granted)).Truncate(grain) - 3*grain; left < lease {
		m.pause(left)
	}
	m.visit()
	m.release(h)
}

// enter acquires or tries.
func (m *mix) enter(a client.Acquire) Hold {
	if m.chance(3) {
		return m.try(a)
	}
	return m.acquire(a)
}

// otherLease is the same lease, half of it, or twice as much.
func (m *mix) otherLease(lease time.Duration) time.Duration {
	return []time.Duration{lease, (lease / 2).Truncate(grain), 2 * lease}[m.Rand.IntN(3)]
}

// refusedReentry requests again what the owner holds; of a readers-writer lock, in either mode.
func refusedReentry(m *mix) {
	a := m.asks()
	h := m.acquire(a)
	if !h.held() {
		return
	}
	if m.Can.Has(client.SharesReads) && m.chance(2) {
		a = m.reading(a.Owner, a.Lease)
	} else if m.Can.Has(client.SharesReads) {
		a = m.writing(a.Owner, a.Lease)
	}
	m.release(m.enter(a))
	m.work(h)
	m.visit()
	m.release(h)
}

// tries asks several times without waiting.
func tries(m *mix) {
	for range 2 + m.Rand.IntN(3) {
		if h := m.try(m.asks()); h.held() {
			m.wait()
			m.visit()
			m.release(h)
		}
		m.wait()
	}
}

// shortWaits gives up at a random time, in any phase of a wait; another owner of this client may be the one that holds
// the lock.
func shortWaits(m *mix) {
	h := m.try(m.asks())
	for range 1 + m.Rand.IntN(3) {
		a := m.asks()
		a.Wait = grain + random(m.Env, 2*m.Params.Hold)
		m.release(m.await(a))
		if m.over() {
			break
		}
	}
	m.release(h)
}
