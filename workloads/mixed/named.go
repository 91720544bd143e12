package mixed

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// namedSequences belong to scenarios that name them (Params.Sequences): they take seconds, or are about a fault.
func namedSequences() []sequence {
	renewing := promise.Watchdog | promise.ReportsLoss
	return []sequence{
		{name: "left to its watchdog", needs: renewing, run: leftToWatchdog},
		{name: "released by force late", needs: promise.ForceRelease | promise.ReportsLoss,
			run: forcedLate},
		{name: "lock object reopened", needs: promise.Reopen | promise.ReportsLoss,
			run: unshared(reopened)},
		{name: "reopened after a release", needs: promise.Reopen, run: unshared(reopenedAfterRelease)},
		{name: "closed while it acquires", needs: promise.CloseEndsWaits, run: unshared(closedWhileAcquiring)},
		{name: "renewed until the end", needs: promise.Renew | promise.ReportsLoss,
			run: renewedUntilEnd},
		{name: "held for long", needs: promise.Watchdog, run: heldForLong},
		{name: "all keys at once", needs: promise.MultiKey, run: allAtOnce},
		{name: "reader that joins late", needs: promise.ReadWrite, run: joinsLate},
		{name: "read late in a write", run: readsLate,
			needs: promise.ReadWrite | promise.Downgrade | promise.ReportsLoss},
		{name: "read awaited in a write", run: readAwaited,
			needs: promise.ReadWrite | promise.Downgrade | promise.ReportsLoss},
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
	m.Key = m.OwnKey
	first := m.Acquire(m.newRequest())
	if !first.Granted() {
		return
	}
	if m.Chance(2) {
		m.Key = m.Keys[m.Rand.IntN(len(m.Keys))]
		m.Try(m.newRequest())
	}
	m.PauseInHold()
	m.Session.Reopen(m.Context, first.Key)
	m.Key = first.Key
	m.visit()
	if first.Valid > 0 && first.Valid <= longestLease {
		m.Pause(first.Valid + workload.BeyondSlack)
		m.visit()
	}
}

// afterRelease is how long after a release a client closes its lock object: sooner than package lock repeats a release
// that a master of a quorum did not confirm, if the lease is long (Options.NodeTimeout).
const afterRelease = 480 * time.Millisecond

// reopenedAfterRelease holds a shared key, releases it, and closes its lock object a moment later. Close has to
// complete releases that a server has not confirmed by then.
func reopenedAfterRelease(m *mix) {
	m.Key = m.Keys[m.Rand.IntN(len(m.Keys))]
	h := m.Acquire(m.newRequest())
	if !h.Granted() {
		return
	}
	m.PauseInHold()
	if m.leave(h) {
		m.Pause(afterRelease)
		m.Session.Reopen(m.Context, h.Key)
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
	m.Key = m.Keys[m.Rand.IntN(len(m.Keys))]
	a := m.Patient(m.newRequest())
	after := lateClosed
	if m.Chance(2) {
		after = soonClosed
	}
	after = 1 + time.Duration(m.Rand.Int64N(int64(after)))
	h, outcome := m.Session.AcquireUntilClosed(m.Context, a, after)
	if outcome == history.OK {
		m.PauseInHold()
		m.leave(h)
		return
	}
	m.Pause(m.Backoff())
}

// longHold is the length of a hold during which a fault should take effect.
const longHold = 5 * time.Second

// leftToWatchdog holds several keys, if the lock can, or one, for seconds, and then releases them. If they are lost
// meanwhile, it does not release them: the client continues with other operations, and the rest of the hold ends with
// its lease.
func leftToWatchdog(m *mix) {
	a := m.Writing(m.NewOwner(), 0)
	if m.Can.Has(promise.MultiKey) && len(m.Keys) > 1 && m.Chance(2) {
		a = m.Several(a)
	}
	if h := m.Acquire(a); h.Granted() {
		m.keepFor(h, longHold)
	}
}

// keepFor keeps a hold and releases it, unless it is lost before.
func (m *mix) keepFor(h session.Hold, d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until) && !m.Over(); m.Pause(workload.BeyondQueue) {
		if m.Session.Lost(h) {
			m.Pause(2 * workload.BeyondSlack)
			return
		}
	}
	if !m.Session.Lost(h) {
		m.Release(h)
	}
}

// longestHold is for how long a client holds one key while other clients request it together with more keys. It is
// longer than a lock that backs off keeps its keys ([promise.MultiKeyBacksOff4s]).
const longestHold = 12 * time.Second

// heldForLong holds one of the shared keys.
func heldForLong(m *mix) {
	m.Key = m.Keys[m.Rand.IntN(len(m.Keys))]
	if h := m.Acquire(m.Writing(m.NewOwner(), 0)); h.Granted() {
		m.keepFor(h, longestHold)
	}
}

// allAtOnce acquires all shared keys in one operation, in random order, and waits until it has them.
func allAtOnce(m *mix) {
	a := m.Writing(m.NewOwner(), 0)
	a.Keys = slices.Clone(m.Keys)
	m.Rand.Shuffle(len(a.Keys), func(i, j int) { a.Keys[i], a.Keys[j] = a.Keys[j], a.Keys[i] })
	m.Key, a.Key = a.Keys[0], a.Keys[0]
	if h := m.Acquire(a); h.Granted() {
		m.work(h)
		m.Release(h)
	}
}

// forcedLate holds the client's own key for up to two seconds, in which a fault may begin, and releases it by force.
// Later, when the fault is over perhaps, the owner releases the lock that it no longer holds.
func forcedLate(m *mix) {
	m.Key = m.OwnKey
	h := m.Acquire(m.request(m.NewOwner(), max(m.Lease(), 2*longHold)))
	if !h.Granted() {
		return
	}
	m.Pause(m.Random(2 * time.Second))
	if m.forceOwn() != history.OK {
		m.Release(h)
		return
	}
	m.Pause(workload.BeyondQueue + m.Random(2*time.Second))
	m.Release(h)
	m.visit()
}

// renewedUntilEnd renews a hold with a short lease until it is lost, or for some seconds: a renewal that gets no reply
// ends with the hold.
func renewedUntilEnd(m *mix) {
	lease := 2 * m.ShortLease()
	h := m.Acquire(m.request(m.NewOwner(), lease))
	if !h.Granted() {
		return
	}
	for until := time.Now().Add(longHold); time.Now().Before(until) && !m.Over(); {
		m.Pause((lease / 3).Truncate(workload.Grain))
		if m.Session.Renew(m.Context, h, lease).Outcome != history.OK {
			break
		}
	}
	m.Release(h)
}

// lateLease is the lease of a reader that joins late: it outlasts the waits of the sequence.
const lateLease = 10 * time.Second

// joinsLate leaves a reader of the client's own key to its short lease. Another one joins before that ends, and reads
// beyond it. After its release a writer is granted the lock: nothing is left of the first reader.
func joinsLate(m *mix) {
	m.Key = m.OwnKey
	lease := m.ShortLease()
	first := m.Acquire(m.Reading(m.NewOwner(), lease))
	if !first.Granted() {
		return
	}
	granted := time.Now()
	m.Pause(m.within(lease))
	if h := m.Try(m.Reading(m.NewOwner(), lateLease)); h.Granted() {
		m.Pause(lease + m.Random(workload.BeyondSlack))
		m.Release(h)
	}
	m.visitPatiently(m.NewWrite())
	m.ReleaseRenewed(first, granted)
}

// readsLate leaves a writer of the client's own key to its short lease. Before that ends, its owner also reads, and
// does so beyond it. Then another reader is granted the lock: nothing is left of the write.
func readsLate(m *mix) {
	m.Key = m.OwnKey
	owner, lease := m.NewOwner(), m.ShortLease()
	if write := m.Acquire(m.Writing(owner, lease)); !write.Granted() {
		return
	}
	m.Pause(m.within(lease))
	h := m.Try(m.Reading(owner, lateLease))
	if !h.Granted() {
		return
	}
	m.Pause(lease)
	m.visitPatiently(m.NewRead())
	m.Release(h)
}

// readAwaited leaves a writer of the client's own key to its short lease, while its owner also reads, for longer.
// Another reader comes before the write ends: it waits for that end, not for the end of the read.
func readAwaited(m *mix) {
	m.Key = m.OwnKey
	owner := m.NewOwner()
	if write := m.Acquire(m.Writing(owner, m.ShortLease())); !write.Granted() {
		return
	}
	if h := m.Try(m.Reading(owner, lateLease)); h.Granted() {
		m.visitPatiently(m.NewRead())
		m.Release(h)
	}
}

// visitPatiently acquires the lock, for which it waits as long as the workload says, also on the client's own key.
func (m *mix) visitPatiently(a client.Acquire) {
	m.Release(m.Await(m.Patient(a)))
}

// within is a random part of a lease, or all of it but some milliseconds, so that the next request arrives as it ends.
func (m *mix) within(lease time.Duration) time.Duration {
	if m.Chance(2) {
		return m.Random(lease)
	}
	return lease - m.Random(20*time.Millisecond)
}
