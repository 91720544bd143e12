package workloads

import (
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// renewSequences are about leases.
func renewSequences() []sequence {
	return []sequence{
		{name: "renewed by hand", needs: client.Capabilities{client.CanRenew}, run: holding((*mix).brief, renewed)},
		{name: "renewed for less", needs: client.Capabilities{client.CanRenew},
			run: holding((*mix).brief, renewedForLess)},
		{name: "renewal of what is not held", needs: client.Capabilities{client.CanRenew},
			run: holding((*mix).asks, renewNothing)},
		{name: "expired", needs: client.Capabilities{client.ReportsLoss}, run: expired},
		{name: "watchdog", needs: client.Capabilities{client.RenewsItself}, run: watched},
		{name: "short beside long", needs: client.Capabilities{client.ReportsLoss, client.SharesReads}, run: shortBesideLong},
	}
}

// renewed holds for longer than the lease that was granted and renews it by hand, for the same time or another.
func renewed(m *mix, h Hold) {
	for range 1 + m.Rand.IntN(3) {
		m.pause((h.Lease / 2).Truncate(grain))
		longer := m.otherLease(h.Lease)
		if m.Can.Has(client.RenewsItself) && m.chance(3) {
			longer = 0 // the lease that it was granted with
		}
		if m.Session.Renew(m.ctx, h, longer).Outcome != history.OK || m.over() {
			break
		}
		m.visit()
	}
	m.visit()
	m.release(h)
	m.visit()
}

// renewedForLess renews a hold for less than is left, which must not shorten it: the hold is used for longer than that.
func renewedForLess(m *mix, h Hold) {
	m.Session.Renew(m.ctx, h, (h.Lease / 2).Truncate(grain))
	m.pause((h.Lease * 3 / 5).Truncate(grain))
	m.visit()
	m.release(h)
	m.visit()
}

// renewNothing renews for owners that do not hold the lock, or no longer hold it.
func renewNothing(m *mix, h Hold) {
	stranger := h
	stranger.Owner, stranger.Token = m.owner(), 0
	m.Session.Renew(m.ctx, stranger, m.Params.Lease)
	m.wait()
	m.release(h)
	m.Session.Renew(m.ctx, h, m.Params.Lease)
	m.visit() // that renewal must not have acquired it
}

// beyondSlack is longer than the checkers allow a lock to be late, unless the machine was so busy that the slack of the
// run is longer (checker.Options.Slack): the lock is judged less strictly then.
const beyondSlack = 1200 * time.Millisecond

// expired holds the lock beyond its lease, and then works, renews and releases, perhaps while another owner holds it.
func expired(m *mix) {
	lease := m.short()
	h := m.acquire(m.request(m.owner(), lease))
	if !h.held() {
		return
	}
	late := random(m.Env, lease)
	if m.key == m.own && m.chance(3) {
		late += beyondSlack // only its lease ends it
	}
	m.Session.Work(m.ctx, h, lease+grain+late)
	other := m.sometimes(m.acquire, m.writes)
	if m.Can.Has(client.CanRenew) && m.chance(2) {
		m.Session.Renew(m.ctx, h, m.Params.Lease)
	}
	m.visit()
	m.release(h)
	m.visit()
	m.release(other)
}

// watched holds one key, or two at once, without requesting a lease: the lock renews them. It may acquire the first
// again while it has the second, and may have been idle before, for longer than a lease.
func watched(m *mix) {
	if m.chance(4) {
		m.pause(random(m.Env, time.Second))
	}
	h := m.acquire(m.request(m.owner(), 0))
	if !h.held() {
		return
	}
	second := m.sometimes(m.try, func() client.Acquire {
		m.key = m.keys[m.Rand.IntN(len(m.keys))]
		return m.request(m.owner(), 0)
	})
	m.key = h.Key
	if m.chance(3) {
		m.outlive(h)
	}
	if second.held() && m.Can.Has(client.Reentrant) && m.chance(2) && !m.reenter(h) {
		return
	}
	if second.held() && m.chance(2) { // under the context of the first, if the client uses contexts
		m.key = second.Key
		m.visit()
		m.key = h.Key
	}
	for range 1 + m.Rand.IntN(3) {
		m.Session.Work(m.ctx, h, grain+random(m.Env, 4*m.Params.Hold))
		m.visit()
	}
	if m.release(h); second.held() {
		m.key = second.Key
		m.visit()
		m.release(second)
	}
}

// reenter acquires again what h holds, under the contexts of all that the client holds if it uses contexts, and
// releases that. False: the outcome of the release is not known.
func (m *mix) reenter(h Hold) (known bool) {
	a := client.Acquire{Key: h.Key, Owner: h.Owner, Mode: h.Mode}
	return m.leave(m.enter(a))
}

// longestLease is the longest lease of a lock that a sequence waits for.
const longestLease = 2 * time.Second

// outlive works for longer than the lease with which h was granted, which the lock renews.
func (m *mix) outlive(h Hold) {
	if h.Valid > 0 && h.Valid <= longestLease {
		m.Session.Work(m.ctx, h, (h.Valid + random(m.Env, h.Valid)).Truncate(grain))
	}
}

// shortBesideLong is a reader with a short lease beside one with a long one: a writer must wait for the second.
func shortBesideLong(m *mix) {
	long := m.acquire(m.reading(m.owner(), max(m.Params.Lease, time.Second)))
	if !long.held() {
		return
	}
	lease := m.short()
	if brief := m.try(m.reading(m.owner(), lease)); brief.held() {
		m.Session.Work(m.ctx, brief, lease+random(m.Env, lease))
		m.writeVisit()
		m.release(brief)
	}
	m.writeVisit()
	m.release(long)
	m.writeVisit()
}
