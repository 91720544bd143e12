package mixed

import (
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// holdSequences are about acquiring.
func holdSequences() []sequence {
	return []sequence{
		{name: "plain", run: plain},
		{name: "nested", needs: promise.Reentrant, run: nested},
		{name: "nested leases", needs: promise.Reentrant | promise.ReportsLoss,
			run: holding((*mix).newShortLease, nestedLeases)},
		{name: "to the end", needs: promise.ReportsLoss, run: toTheEnd},
		{name: "refused re-entry", needs: promise.RefusesReentry, run: refusedReentry},
		{name: "tries", needs: promise.Try, run: tries},
		{name: "short waits", run: shortWaits},
	}
}

// plain is the common use.
func plain(m *mix) {
	holding((*mix).newRequest, func(m *mix, h session.Hold) {
		m.work(h)
		m.visit()
		m.Release(h)
		if m.Key == m.OwnKey {
			m.visit() // it is free now
		}
	})(m)
}

// maxDepth is how often an owner holds a lock at the same time.
const maxDepth = 3

// nested acquires the lock up to three times for one owner, with leases of different length, and visits it for
// another owner at every depth on the way out.
func nested(m *mix) {
	holds := m.enterNested(m.newRequest(), m.PauseInHold)
	for n := len(holds) - 1; n >= 0; n-- {
		m.visit()
		if !m.leave(holds[n]) {
			return
		}
		m.PauseInHold()
	}
}

// enterNested acquires the lock two or three times for one owner, with leases of different length, and calls each after
// every grant. It returns the grants, the outermost first.
func (m *mix) enterNested(a client.Acquire, each func()) (holds []session.Hold) {
	for range 2 + m.Rand.IntN(maxDepth-1) {
		h := m.enter(a)
		if !h.Granted() {
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
func (m *mix) leave(h session.Hold) (known bool) {
	return !h.Granted() || m.Session.Release(m.Context, h).Outcome != history.Info
}

// nestedLeases acquires a held lock again for a shorter lease, perhaps renews the inner hold by hand, and releases it
// before its lease ends. The outer hold must last longer.
func nestedLeases(m *mix, outer session.Hold) {
	a := m.again(outer)
	a.Lease = (outer.Lease / 3).Truncate(workload.Grain)
	if inner := m.Try(a); inner.Granted() {
		if m.Can.Has(promise.Renew) && m.Chance(2) {
			m.Session.Renew(m.Context, inner, a.Lease)
		}
		m.visit()
		if !m.leave(inner) {
			return
		}
	}
	m.Pause((outer.Lease * 3 / 5).Truncate(workload.Grain))
	m.visit()
	m.Release(outer)
}

// toTheEnd holds until the end of the lease, and visits the lock for another owner shortly before, and a moment before
// the validity ends: even a server whose clock is slightly fast must still have the lock then.
func toTheEnd(m *mix) {
	lease := 2 * m.ShortLease()
	if m.Chance(2) {
		lease += time.Second
	}
	h := m.Acquire(m.request(m.NewOwner(), lease))
	if !h.Granted() {
		return
	}
	granted := time.Now()
	m.Pause((lease * 4 / 5).Truncate(workload.Grain))
	m.visit()
	if left := (h.Valid - time.Since(granted)).Truncate(workload.Grain) - 3*workload.Grain; left < lease {
		m.Pause(left)
	}
	m.visit()
	m.Release(h)
}

// enter acquires or tries.
func (m *mix) enter(a client.Acquire) session.Hold {
	if m.Chance(3) {
		return m.Try(a)
	}
	return m.Acquire(a)
}

// otherLease is the same lease, half of it, or twice as much.
func (m *mix) otherLease(lease time.Duration) time.Duration {
	return []time.Duration{lease, (lease / 2).Truncate(workload.Grain), 2 * lease}[m.Rand.IntN(3)]
}

// refusedReentry requests the owner's lock again; of a readers-writer lock, in either mode.
func refusedReentry(m *mix) {
	a := m.newRequest()
	h := m.Acquire(a)
	if !h.Granted() {
		return
	}
	if m.Can.Has(promise.ReadWrite) && m.Chance(2) {
		a = m.Reading(a.Owner, a.Lease)
	} else if m.Can.Has(promise.ReadWrite) {
		a = m.Writing(a.Owner, a.Lease)
	}
	m.Release(m.enter(a))
	m.work(h)
	m.visit()
	m.Release(h)
}

// tries asks several times without waiting.
func tries(m *mix) {
	for range 2 + m.Rand.IntN(3) {
		if h := m.Try(m.newRequest()); h.Granted() {
			m.PauseInHold()
			m.visit()
			m.Release(h)
		}
		m.PauseInHold()
	}
}

// shortWaits gives up at a random time, in any phase of a wait; the holder may be another owner of this client.
func shortWaits(m *mix) {
	h := m.Try(m.newRequest())
	for range 1 + m.Rand.IntN(3) {
		a := m.newRequest()
		a.Wait = workload.Grain + m.Random(2*m.Params.Hold)
		m.Release(m.Await(a))
		if m.Over() {
			break
		}
	}
	m.Release(h)
}
