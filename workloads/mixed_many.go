package workloads

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// manySequences are about several permits and several keys.
func manySequences() []sequence {
	return []sequence{
		{name: "permits", needs: client.Capabilities{client.HasPermits}, run: permits},
		{name: "permits of a holder that is late", needs: client.Capabilities{client.HasPermits, client.ReportsLoss},
			run: latePermits},
		{name: "permits whose lease has ended", needs: client.Capabilities{client.HasPermits, client.ReportsLoss},
			run: deadPermits},
		{name: "drain of permits whose lease has ended", run: drainDead,
			needs: client.Capabilities{client.HasPermits, client.ReportsLoss, client.CanDrain}},
		{name: "several keys", needs: client.Capabilities{client.SeveralKeys}, run: severalKeys},
		{name: "one of several first", needs: client.Capabilities{client.SeveralKeys, client.Reentrant}, run: oneFirst},
	}
}

// permits takes some permits several times, and asks for more than are left.
func permits(m *mix) {
	a := m.asks()
	var holds []Hold
	for range 1 + m.Rand.IntN(maxDepth) {
		a.Owner, a.Permits = m.owner(), 1+m.Rand.IntN(m.limit())
		if h := m.try(a); h.held() {
			holds = append(holds, h)
		}
		m.wait()
	}
	m.visit()
	m.Rand.Shuffle(len(holds), func(i, j int) { holds[i], holds[j] = holds[j], holds[i] })
	for _, h := range holds {
		m.release(h)
		m.visit()
	}
}

// latePermits waits for a permit while one is held with a short lease and all others with a long one: it is free when
// the short lease ends.
func latePermits(m *mix) {
	m.key = m.own
	lease := m.short()
	a := m.writing(m.owner(), lease)
	if a.Limit < 2 {
		return
	}
	a.Permits = 1
	brief := m.try(a)
	if !brief.held() {
		return
	}
	a.Owner, a.Lease, a.Permits = m.owner(), 2*beyondSlack+max(m.Params.Lease, lease), a.Limit-1
	if rest := m.try(a); rest.held() {
		a.Owner, a.Lease, a.Permits, a.Wait = m.owner(), m.lease(), 1, lease+beyondSlack+grain
		m.release(m.await(a))
		m.release(rest)
	}
	m.release(brief)
}

// deadPermits leaves permits to their short lease, and long after that takes all there are.
func deadPermits(m *mix) { m.leavePermits(func() {}) }

// drainDead leaves permits to their short lease, and drains the semaphore long after that.
func drainDead(m *mix) {
	m.leavePermits(func() {
		a := m.writes()
		if all, answer := m.Session.Drain(m.ctx, a); answer.Outcome == history.OK {
			m.ask(all)
			m.release(all)
		}
	})
}

// leavePermits leaves permits to their short lease, perhaps beside others that last, asks long after that who holds
// them, calls then, and takes all there are.
func (m *mix) leavePermits(then func()) {
	m.key = m.own
	lease := m.short()
	a := m.writing(m.owner(), lease)
	a.Permits = 1 + m.Rand.IntN(a.Limit)
	dead := m.acquire(a)
	if !dead.held() {
		return
	}
	var rest Hold
	if a.Permits < a.Limit && m.chance(2) {
		a.Owner, a.Lease, a.Permits = m.owner(), 3*beyondSlack+lease, 1
		rest = m.try(a)
	}
	m.pause(lease + beyondSlack)
	if m.chance(2) {
		m.ask(dead)
	}
	then()
	if rest.held() {
		m.ask(rest)
		m.release(rest)
	}
	m.takeAll()
}

// severalKeys acquires two or three keys at once, in random order, and releases them. While it holds them it tries
// single ones, which must be refused.
func severalKeys(m *mix) {
	all := m.keys
	if m.key == m.own {
		all = append(slices.Clone(all), m.own)
	}
	a := m.writes()
	if m.chance(3) {
		a.Lease = 2 * m.short()
	}
	a.Keys = m.some(all)
	a.Key = a.Keys[0]
	h := m.enter(a)
	if !h.held() {
		return
	}
	m.work(h)
	for _, key := range a.Keys {
		m.key = key
		m.visit()
	}
	if m.Can.Has(client.CanRenew) && m.chance(2) {
		m.outlast(h)
	}
	m.release(h)
}

// outlast renews a hold of several keys and works for longer than it was granted for, while others try each key.
func (m *mix) outlast(h Hold) {
	lease := m.Params.Lease
	if m.Can.Has(client.RenewsItself) && m.chance(2) {
		lease = 0 // the lease that it was granted with
	}
	if m.Session.Renew(m.ctx, h, lease).Outcome != history.OK || h.Valid > longestLease {
		return
	}
	m.Session.Work(m.ctx, h, (h.Valid * 3 / 4).Truncate(grain))
	for _, key := range h.Keys {
		m.key = key
		m.visit()
	}
}

// oneFirst acquires one key alone, and then several, of which it is one, for the same owner.
func oneFirst(m *mix) {
	if len(m.keys) < 2 {
		plain(m)
		return
	}
	a := m.writing(m.owner(), max(m.lease(), time.Second))
	keys := m.some(m.keys)
	m.key = keys[m.Rand.IntN(len(keys))]
	a.Key = m.key
	outer := m.acquire(a)
	if !outer.held() {
		return
	}
	a.Keys, a.Key = keys, keys[0]
	if !m.leave(m.try(a)) {
		return
	}
	m.visit()
	m.release(outer)
}

// some are two or three of keys, in any order.
func (m *mix) some(keys []string) []string {
	all := slices.Clone(keys)
	m.Rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(len(all), 2+m.Rand.IntN(2))]
}
