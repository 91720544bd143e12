package workloads

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file is about the rounds of workload waiters in which those who have waited longest give up just when the lock
// is released to them: the others must be woken in their place.

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
		a := m.writing(m.owner(), m.lease())
		a.Wait = m.Env.wait()
		if h, outcome := m.Session.Acquire(m.ctx, a); outcome == history.OK {
			m.pause((held - time.Since(begun)).Truncate(grain))
			m.Session.Release(m.ctx, h)
		}
		return
	}
	m.pause(2*m.Params.Hold + time.Duration(r.place)*apart)
	a := m.smaller()
	if r.place <= m.Params.Clients/2 {
		a.Wait = max(grain, (held-time.Since(begun)).Truncate(grain)+random(m.Env, deserting))
	}
	if h, outcome := m.Session.Acquire(m.ctx, a); outcome == history.OK {
		m.wait()
		m.Session.Release(m.ctx, h)
	}
}
