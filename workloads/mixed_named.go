package workloads

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// namedSequences belong to scenarios that name them (Params.Sequences): they take seconds, or are about a fault.
func namedSequences() []sequence {
	renewing := client.Capabilities{client.RenewsItself, client.ReportsLoss}
	return []sequence{
		{name: "left to its watchdog", needs: renewing, run: leftToWatchdog},
		{name: "released by force late", needs: client.Capabilities{client.CanForceRelease, client.ReportsLoss},
			run: forcedLate},
		{name: "lock object reopened", needs: client.Capabilities{client.Reopens, client.ReportsLoss},
			run: unshared(reopened)},
		{name: "reopened after a release", needs: client.Capabilities{client.Reopens}, run: unshared(reopenedAfterRelease)},
		{name: "closed while it acquires", needs: client.Capabilities{client.EndsWaits}, run: unshared(closedWhileAcquiring)},
		{name: "renewed until the end", needs: client.Capabilities{client.CanRenew, client.ReportsLoss},
			run: renewedUntilEnd},
		{name: "held for long", needs: client.Capabilities{client.RenewsItself}, run: heldForLong},
		{name: "all keys at once", needs: client.Capabilities{client.SeveralKeys}, run: allAtOnce},
		{name: "reader that joins late", needs: client.Capabilities{client.SharesReads}, run: joinsLate},
		{name: "read late in a write", run: readsLate,
			needs: client.Capabilities{client.SharesReads, client.CanDowngrade, client.ReportsLoss}},
		{name: "read awaited in a write", run: readAwaited,
			needs: client.Capabilities{client.SharesReads, client.CanDowngrade, client.ReportsLoss}},
	}
}

// unshared is a sequence of a client that has a lock object of its own; another one executes the plain one instead.
func unshared(run func(m *mix)) func(m *mix) {
	return func(m *mix) {
		if m.Params.PerInstance > 1 {
			plain(m)
			return
		}
		run(m)
	}
}

// reopened closes the lock object while the client holds one lock or two, with a lease or renewed, and continues to
// work. What servers keep of the holds ends with the lease.
func reopened(m *mix) {
	m.key = m.own
	first := m.acquire(m.asks())
	if !first.held() {
		return
	}
	if m.chance(2) {
		m.key = m.keys[m.Rand.IntN(len(m.keys))]
		m.try(m.asks())
	}
	m.wait()
	m.Session.Reopen(m.ctx, first.Key)
	m.key = first.Key
	m.visit()
	if first.Valid > 0 && first.Valid <= longestLease {
		m.pause(first.Valid + beyondSlack)
		m.visit()
	}
}

// afterRelease is how long after a release a client closes its lock object: sooner than package lock repeats a release
// that a master of a quorum did not confirm, if the lease is long (Options.NodeTimeout).
const afterRelease = 480 * time.Millisecond

// reopenedAfterRelease holds a shared key, releases it, and closes its lock object a moment later. Close has to
// complete what a server has not confirmed by then.
func reopenedAfterRelease(m *mix) {
	m.key = m.keys[m.Rand.IntN(len(m.keys))]
	h := m.acquire(m.asks())
	if !h.held() {
		return
	}
	m.wait()
	if m.leave(h) {
		m.pause(afterRelease)
		m.Session.Reopen(m.ctx, h.Key)
	}
}

// During soonClosed the first request is in flight; until lateClosed the acquire waits if another one holds the lock.
const (
	soonClosed = 3 * time.Millisecond
	lateClosed = 150 * time.Millisecond
)

// closedWhileAcquiring closes the lock object during an acquire, as a service does when it shuts down: while the first
// request is in flight, or while the acquire waits. A lock that a server granted meanwhile ends with its lease.
func closedWhileAcquiring(m *mix) {
	m.key = m.keys[m.Rand.IntN(len(m.keys))]
	a := m.patient(m.asks())
	after := lateClosed
	if m.chance(2) {
		after = soonClosed
	}
	after = 1 + time.Duration(m.Rand.Int64N(int64(after)))
	h, outcome := m.Session.AcquireUntilClosed(m.ctx, a, after)
	if outcome == history.OK {
		m.wait()
		m.leave(h)
		return
	}
	m.pause(backoff(m.Env))
}

// longHold is the length of a hold during which a fault should take effect.
const longHold = 5 * time.Second

// leftToWatchdog holds several keys, if the lock can, or one, for seconds, and then releases them. If they are lost
// meanwhile, it does not release them: the client continues with other operations, and the rest of the hold ends with
// its lease.
func leftToWatchdog(m *mix) {
	a := m.writing(m.owner(), 0)
	if m.Can.Has(client.SeveralKeys) && len(m.keys) > 1 && m.chance(2) {
		a = m.several(a)
	}
	if h := m.acquire(a); h.held() {
		m.keepFor(h, longHold)
	}
}

// keepFor keeps a hold and releases it, unless it is lost before.
func (m *mix) keepFor(h Hold, d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until) && !m.over(); m.pause(beyondQueue) {
		if m.Session.lost(h) {
			m.pause(2 * beyondSlack)
			return
		}
	}
	if !m.Session.lost(h) {
		m.release(h)
	}
}

// longestHold is for how long a client holds one key while other clients request it together with more keys. It is
// longer than a lock that backs off keeps what it has (checker.Options.BacksOff).
const longestHold = 12 * time.Second

// heldForLong holds one of the shared keys.
func heldForLong(m *mix) {
	m.key = m.keys[m.Rand.IntN(len(m.keys))]
	if h := m.acquire(m.writing(m.owner(), 0)); h.held() {
		m.keepFor(h, longestHold)
	}
}

// allAtOnce acquires all shared keys in one operation, in random order, and waits until it has them.
func allAtOnce(m *mix) {
	a := m.writing(m.owner(), 0)
	a.Keys = slices.Clone(m.keys)
	m.Rand.Shuffle(len(a.Keys), func(i, j int) { a.Keys[i], a.Keys[j] = a.Keys[j], a.Keys[i] })
	m.key, a.Key = a.Keys[0], a.Keys[0]
	if h := m.acquire(a); h.held() {
		m.work(h)
		m.release(h)
	}
}

// forcedLate holds the client's own key for up to two seconds, in which a fault may begin, and releases it by force.
// Later, when the fault is over perhaps, the owner releases what it no longer holds.
func forcedLate(m *mix) {
	if m.spoiled {
		plain(m)
		return
	}
	m.key = m.own
	h := m.acquire(m.request(m.owner(), max(m.lease(), 2*longHold)))
	if !h.held() {
		return
	}
	m.pause(random(m.Env, 2*time.Second))
	forced := m.Session.ForceRelease(m.ctx, m.key).Outcome
	if m.spoiled = forced == history.Info; forced != history.OK {
		m.release(h)
		return
	}
	m.pause(beyondQueue + random(m.Env, 2*time.Second))
	m.release(h)
	m.visit()
}

// renewedUntilEnd renews a hold with a short lease until it is lost, or for some seconds: a renewal that gets no reply
// ends with the hold.
func renewedUntilEnd(m *mix) {
	lease := 2 * m.short()
	h := m.acquire(m.request(m.owner(), lease))
	if !h.held() {
		return
	}
	for until := time.Now().Add(longHold); time.Now().Before(until) && !m.over(); {
		m.pause((lease / 3).Truncate(grain))
		if m.Session.Renew(m.ctx, h, lease).Outcome != history.OK {
			break
		}
	}
	m.release(h)
}

// lateLease is the lease of a reader that joins late: it outlasts what the sequence waits for.
const lateLease = 10 * time.Second

// joinsLate leaves a reader of the client's own key to its short lease. Another one joins before that ends, and reads
// beyond it. After its release a writer is granted the lock: nothing is left of the first reader.
func joinsLate(m *mix) {
	m.key = m.own
	lease := m.short()
	if first := m.acquire(m.reading(m.owner(), lease)); !first.held() {
		return
	}
	m.pause(m.within(lease))
	if h := m.try(m.reading(m.owner(), lateLease)); h.held() {
		m.pause(lease + random(m.Env, beyondSlack))
		m.release(h)
	}
	m.visitPatiently(m.writes())
}

// readsLate leaves a writer of the client's own key to its short lease. Before that ends, its owner also reads, and
// does so beyond it. Then another reader is granted the lock: nothing is left of the write.
func readsLate(m *mix) {
	m.key = m.own
	owner, lease := m.owner(), m.short()
	if write := m.acquire(m.writing(owner, lease)); !write.held() {
		return
	}
	m.pause(m.within(lease))
	h := m.try(m.reading(owner, lateLease))
	if !h.held() {
		return
	}
	m.pause(lease)
	m.visitPatiently(m.reads())
	m.release(h)
}

// readAwaited leaves a writer of the client's own key to its short lease, while its owner also reads, for longer.
// Another reader comes before the write ends: it waits for that end, not for that of the read.
func readAwaited(m *mix) {
	m.key = m.own
	owner := m.owner()
	if write := m.acquire(m.writing(owner, m.short())); !write.held() {
		return
	}
	if h := m.try(m.reading(owner, lateLease)); h.held() {
		m.visitPatiently(m.reads())
		m.release(h)
	}
}

// visitPatiently acquires the lock, for which it waits as long as the workload says, also on the client's own key.
func (m *mix) visitPatiently(a client.Acquire) {
	m.release(m.await(m.patient(a)))
}

// within is a random part of a lease, or all of it but some milliseconds, so that the next request arrives as it ends.
func (m *mix) within(lease time.Duration) time.Duration {
	if m.chance(2) {
		return random(m.Env, lease)
	}
	return lease - random(m.Env, 20*time.Millisecond)
}
