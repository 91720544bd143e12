package mixed

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// manySequences are about several permits and several keys.
func manySequences() []sequence {
	return []sequence{
		{name: "permits", needs: promise.Permits, run: permits},
		{name: "permits of a holder that is late", needs: promise.Permits | promise.ReportsLoss,
			run: latePermits},
		{name: "permits whose lease has ended", needs: promise.Permits | promise.ReportsLoss,
			run: deadPermits},
		{name: "drain of permits whose lease has ended", run: drainDead,
			needs: promise.Permits | promise.ReportsLoss | promise.ManagesPermits},
		{name: "several keys", needs: promise.MultiKey, run: severalKeys},
		{name: "one of several first", needs: promise.MultiKey | promise.Reentrant, run: oneFirst},
	}
}

// permits takes some permits several times, and asks for more than are left.
func permits(m *mix) {
	a := m.newRequest()
	var holds []session.Hold
	for range 1 + m.Rand.IntN(maxDepth) {
		a.Owner, a.Permits = m.NewOwner(), 1+m.Rand.IntN(m.Limit())
		if h := m.Try(a); h.Granted() {
			holds = append(holds, h)
		}
		m.PauseInHold()
	}
	m.visit()
	m.Rand.Shuffle(len(holds), func(i, j int) { holds[i], holds[j] = holds[j], holds[i] })
	for _, h := range holds {
		m.Release(h)
		m.visit()
	}
}

// latePermits waits for a permit while one is held with a short lease and all others with a long one: it is free when
// the short lease ends.
func latePermits(m *mix) {
	m.Key = m.OwnKey
	lease := m.ShortLease()
	a := m.Writing(m.NewOwner(), lease)
	if a.Limit < 2 {
		return
	}
	a.Permits = 1
	brief := m.Try(a)
	if !brief.Granted() {
		return
	}
	a.Owner, a.Lease, a.Permits = m.NewOwner(), 2*workload.BeyondSlack+max(m.Params.Lease, lease), a.Limit-1
	if rest := m.Try(a); rest.Granted() {
		a.Owner, a.Lease, a.Permits, a.Wait = m.NewOwner(), m.Lease(), 1, lease+workload.BeyondSlack+workload.Grain
		m.Release(m.Await(a))
		m.Release(rest)
	}
	m.Release(brief)
}

// deadPermits leaves permits to their short lease, and long after that takes all there are.
func deadPermits(m *mix) { m.leavePermits(func() {}) }

// drainDead leaves permits to their short lease, and drains the semaphore long after that.
func drainDead(m *mix) {
	m.leavePermits(func() {
		a := m.NewWrite()
		if all, answer := m.Session.Drain(m.Context, a); answer.Outcome == history.OK {
			m.ask(all)
			m.Release(all)
		}
	})
}

// leavePermits leaves permits to their short lease, perhaps beside others that last, asks long after that who holds
// them, calls then, and takes all there are.
func (m *mix) leavePermits(then func()) {
	m.Key = m.OwnKey
	lease := m.ShortLease()
	a := m.Writing(m.NewOwner(), lease)
	a.Permits = 1 + m.Rand.IntN(a.Limit)
	dead := m.Acquire(a)
	if !dead.Granted() {
		return
	}
	granted := time.Now()
	var rest session.Hold
	if a.Permits < a.Limit && m.Chance(2) {
		a.Owner, a.Lease, a.Permits = m.NewOwner(), 3*workload.BeyondSlack+lease, 1
		rest = m.Try(a)
	}
	m.Pause(lease + workload.BeyondSlack)
	if m.Chance(2) {
		m.ask(dead)
	}
	then()
	if rest.Granted() {
		m.ask(rest)
		m.Release(rest)
	}
	m.ReleaseRenewed(dead, granted)
	m.takeAll()
}

// severalKeys acquires two or three keys at once, in random order, and releases them. While it holds them it tries
// single ones, which must be refused.
func severalKeys(m *mix) {
	all := m.Keys
	if m.Key == m.OwnKey {
		all = append(slices.Clone(all), m.OwnKey)
	}
	a := m.NewWrite()
	if m.Chance(3) {
		a.Lease = 2 * m.ShortLease()
	}
	a.Keys = m.SomeKeys(all)
	a.Key = a.Keys[0]
	h := m.enter(a)
	if !h.Granted() {
		return
	}
	m.work(h)
	for _, key := range a.Keys {
		m.Key = key
		m.visit()
	}
	if m.Can.Has(promise.Renew) && m.Chance(2) {
		m.outlast(h)
	}
	m.Release(h)
}

// outlast renews a hold of several keys and works for longer than it was granted for, while others try each key.
func (m *mix) outlast(h session.Hold) {
	lease := m.Params.Lease
	if m.Can.Has(promise.Watchdog) && m.Chance(2) {
		lease = 0 // the lease that it was granted with
	}
	if m.Session.Renew(m.Context, h, lease).Outcome != history.OK || h.Valid > longestLease {
		return
	}
	m.Session.Work(m.Context, h, (h.Valid * 3 / 4).Truncate(workload.Grain))
	for _, key := range h.Keys {
		m.Key = key
		m.visit()
	}
}

// oneFirst acquires one key alone, and then several, of which it is one, for the same owner.
func oneFirst(m *mix) {
	if len(m.Keys) < 2 {
		plain(m)
		return
	}
	a := m.Writing(m.NewOwner(), max(m.Lease(), time.Second))
	keys := m.SomeKeys(m.Keys)
	m.Key = keys[m.Rand.IntN(len(keys))]
	a.Key = m.Key
	outer := m.Acquire(a)
	if !outer.Granted() {
		return
	}
	a.Keys, a.Key = keys, keys[0]
	if !m.leave(m.Try(a)) {
		return
	}
	m.visit()
	m.Release(outer)
}
