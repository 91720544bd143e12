package workloads

import (
	"time"

	"github.com/lockchaos/lockchaos/client"
)

// This file is about the rounds of workload waiters in which those who have waited longest give up just when the lock
// is released to them, or when its lease ends: the others must be woken, or know when to ask, in their place. In
// another kind of round several leases end one after the other, and each of the waiters has to know the next.

const (
	// deserting is for how long after the release the first waiters still leave: a message, a request and its reply
	// take about as long.
	deserting = 6 * grain
	// apart is between the requests of two clients, so that they wait in this order.
	apart = 2 * grain
)

// desert is the part of a client in a round that the first waiters desert. The leader holds all of the lock. The
// clients after it come one by one, and the first half of them leave while the leader releases it.
func (m *mix) desert(r ledRound) {
	begun, held := time.Now(), 6*m.Params.Hold+time.Duration(m.Params.Clients)*apart
	if r.leads() {
		m.use(m.patient(m.writes()), func() { m.pause((held - time.Since(begun)).Truncate(grain)) })
		return
	}
	m.pause(2*m.Params.Hold + time.Duration(r.place)*apart)
	a := m.smaller()
	if r.place <= m.Params.Clients/2 {
		a.Wait = max(grain, (held-time.Since(begun)).Truncate(grain)+random(m.Env, deserting))
	}
	m.use(a, m.wait)
}

// forsake is the part of the first waiter in a round in which the lease of the leader ends: it leaves just before.
func (m *mix) forsake(r ledRound) {
	begun := time.Now()
	m.pause(2 * m.Params.Hold)
	a := m.smaller()
	a.Wait = max(grain, (r.lease - time.Since(begun) - random(m.Env, r.lease/8)).Truncate(grain))
	m.use(a, m.wait)
}

// lapse is a round in which the first clients take a permit each and leave it to its lease; the others wait for them.
func (m *mix) lapse(r ledRound) {
	if m.Can.Has(client.SharesReads) {
		m.lapseReaders(r)
		return
	}
	a := m.patient(m.writes())
	a.Permits = 1
	if r.place < m.limit() {
		m.pause(time.Duration(r.place) * grain)
		a.Lease = r.lease + time.Duration(r.place)*3*m.Params.Hold
		m.Session.Acquire(m.ctx, a)
		return
	}
	m.pause(2*m.Params.Hold + time.Duration(r.place)*apart)
	m.use(a, func() { m.pause(2 * beyondSlack) })
}

// lapseReaders is a round in which two clients read, one of them with a long lease. It releases, and the other leaves
// its hold to its short lease: those who wait to write have to learn that it ends sooner than the first one would have.
func (m *mix) lapseReaders(r ledRound) {
	switch r.place {
	case 0:
		if h := m.acquire(m.reads()); h.held() {
			m.pause(6 * m.Params.Hold)
			m.release(h)
		}
	case 1:
		m.pause(grain)
		m.acquire(m.reading(m.owner(), r.lease))
	default:
		m.pause(2*m.Params.Hold + time.Duration(r.place)*apart)
		m.hold(m.patient(m.writes()))
	}
}
