package mixed

import (
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// renewSequences are about leases.
func renewSequences() []sequence {
	return []sequence{
		{name: "renewed by hand", needs: promise.Renew, run: holding((*mix).newShortLease, renewed)},
		{name: "renewed for less", needs: promise.Renew,
			run: holding((*mix).newShortLease, renewedForLess)},
		{name: "renewal of what is not held", needs: promise.Renew,
			run: holding((*mix).newRequest, renewNothing)},
		{name: "expired", needs: promise.ReportsLoss, run: expired},
		{name: "watchdog", needs: promise.Watchdog, run: watched},
		{name: "short beside long", needs: promise.ReportsLoss | promise.ReadWrite, run: shortBesideLong},
	}
}

// renewed holds for longer than the lease that was granted and renews it by hand, for the same time or another.
func renewed(m *mix, h session.Hold) {
	for range 1 + m.Rand.IntN(3) {
		m.Pause((h.Lease / 2).Truncate(workload.Grain))
		longer := m.otherLease(h.Lease)
		if m.Can.Has(promise.Watchdog) && m.Chance(3) {
			longer = 0 // the lease that it was granted with
		}
		if m.Session.Renew(m.Context, h, longer).Outcome != history.OK || m.Over() {
			break
		}
		m.visit()
	}
	m.visit()
	m.Release(h)
	m.visit()
}

// renewedForLess renews a hold for less than is left, which must not shorten it: the hold is used for longer than that.
func renewedForLess(m *mix, h session.Hold) {
	m.Session.Renew(m.Context, h, (h.Lease / 2).Truncate(workload.Grain))
	m.Pause((h.Lease * 3 / 5).Truncate(workload.Grain))
	m.visit()
	m.Release(h)
	m.visit()
}

// renewNothing renews for owners that do not hold the lock, or no longer hold it.
func renewNothing(m *mix, h session.Hold) {
	stranger := h
	stranger.Owner, stranger.Token = m.NewOwner(), 0
	m.Session.Renew(m.Context, stranger, m.Params.Lease)
	m.PauseInHold()
	m.Release(h)
	m.Session.Renew(m.Context, h, m.Params.Lease)
	m.visit() // that renewal must not have acquired it
}

// expired holds the lock beyond its lease, and then works, renews and releases, perhaps while another owner holds it.
func expired(m *mix) {
	lease := m.ShortLease()
	h := m.Acquire(m.request(m.NewOwner(), lease))
	if !h.Granted() {
		return
	}
	late := m.Random(lease)
	if m.Key == m.OwnKey && m.Chance(3) {
		late += workload.BeyondSlack // only its lease ends it
	}
	m.Session.Work(m.Context, h, lease+workload.Grain+late)
	other := m.sometimes(m.Acquire, m.NewWrite)
	if m.Can.Has(promise.Renew) && m.Chance(2) {
		m.Session.Renew(m.Context, h, m.Params.Lease)
	}
	m.visit()
	m.Release(h)
	m.visit()
	m.Release(other)
}

// watched holds one key, or two at once, without requesting a lease: the lock renews them. It may acquire the first
// again while it has the second, and may have been idle before, for longer than a lease.
func watched(m *mix) {
	if m.Chance(4) {
		m.Pause(m.Random(time.Second))
	}
	h := m.Acquire(m.request(m.NewOwner(), 0))
	if !h.Granted() {
		return
	}
	second := m.sometimes(m.Try, func() client.Acquire {
		m.Key = m.Keys[m.Rand.IntN(len(m.Keys))]
		return m.request(m.NewOwner(), 0)
	})
	m.Key = h.Key
	if m.Chance(3) {
		m.outlive(h)
	}
	if second.Granted() && m.Can.Has(promise.Reentrant) && m.Chance(2) && !m.reenter(h) {
		return
	}
	if second.Granted() && m.Chance(2) { // under the context of the first, if the client uses contexts
		m.Key = second.Key
		m.visit()
		m.Key = h.Key
	}
	for range 1 + m.Rand.IntN(3) {
		m.Session.Work(m.Context, h, workload.Grain+m.Random(4*m.Params.Hold))
		m.visit()
	}
	if m.Release(h); second.Granted() {
		m.Key = second.Key
		m.visit()
		m.Release(second)
	}
}

// reenter acquires the lock of h again, under the contexts of all holds of the client if it uses contexts, and releases
// it. False: the outcome of the release is not known.
func (m *mix) reenter(h session.Hold) (known bool) {
	a := client.Acquire{Key: h.Key, Owner: h.Owner, Mode: h.Mode}
	return m.leave(m.enter(a))
}

// longestLease is the longest lease of a lock that a sequence waits for.
const longestLease = 2 * time.Second

// outlive works for longer than the lease with which h was granted, which the lock renews.
func (m *mix) outlive(h session.Hold) {
	if h.Valid > 0 && h.Valid <= longestLease {
		m.Session.Work(m.Context, h, (h.Valid + m.Random(h.Valid)).Truncate(workload.Grain))
	}
}

// shortBesideLong is a reader with a short lease beside one with a long one: a writer must wait for the second.
func shortBesideLong(m *mix) {
	long := m.Acquire(m.Reading(m.NewOwner(), max(m.Params.Lease, time.Second)))
	if !long.Granted() {
		return
	}
	lease := m.ShortLease()
	if brief := m.Try(m.Reading(m.NewOwner(), lease)); brief.Granted() {
		m.Session.Work(m.Context, brief, lease+m.Random(lease))
		m.writeVisit()
		m.Release(brief)
	}
	m.writeVisit()
	m.Release(long)
	m.writeVisit()
}
