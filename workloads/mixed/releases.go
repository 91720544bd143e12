package mixed

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// releaseSequences are about releases of locks that the owner does not hold.
func releaseSequences() []sequence {
	return []sequence{
		{name: "released twice", run: holding((*mix).newRequest, releasedTwice)},
		{name: "release of nothing", run: holding((*mix).newRequest, releaseNothing)},
		{name: "release of a caller that has given up", needs: promise.ReleaseSurvivesCancel,
			run: holding((*mix).newRequest, releaseCanceled)},
		{name: "block of code", needs: promise.HasDo | promise.ReportsLoss, run: scoped},
		{name: "released twice while nested", needs: promise.Reentrant,
			run: holding((*mix).newRequest, releasedTooOften)},
	}
}

// releasedTwice releases again, before or after another owner has acquired the lock.
func releasedTwice(m *mix, h session.Hold) {
	m.PauseInHold()
	if !m.leave(h) {
		return
	}
	other := m.sometimes(m.Acquire, m.NewWrite)
	if m.Release(h); other.Granted() {
		m.visit()
		m.Release(other)
	}
}

// releaseCanceled releases when the context of its caller has ended, as a deferred release often does.
func releaseCanceled(m *mix, h session.Hold) {
	m.PauseInHold()
	if m.Session.ReleaseCanceled(m.Context, h).Outcome != history.Info {
		m.visit()
	}
}

// releaseNothing releases for an owner that never held the lock, while another one does.
func releaseNothing(m *mix, h session.Hold) {
	stranger := h
	stranger.Owner, stranger.Token = m.NewOwner(), 0
	m.Release(stranger)
	m.visit()
	m.PauseInHold()
	m.Release(h)
}

// releasedTooOften releases once more than it has acquired.
func releasedTooOften(m *mix, h session.Hold) {
	again := m.enter(m.again(h))
	if !m.leave(h) {
		return
	}
	if again.Granted() {
		m.visit()
		if !m.leave(h) {
			return
		}
	}
	m.Release(h)
	m.visit()
}

// scoped holds the lock for a block of code. The block may end with an error, or after its lease, when another owner
// may hold the lock.
func scoped(m *mix) {
	a := m.request(m.NewOwner(), m.ShortLease())
	a.Scoped = true
	h := m.Acquire(a)
	if !h.Granted() {
		return
	}
	m.visit()
	var other session.Hold
	if m.Chance(2) {
		m.Session.Work(m.Context, h, a.Lease+workload.Grain)
		other = m.Acquire(m.NewWrite())
	}
	release := m.Session.Release
	if m.Chance(2) {
		release = m.Session.ReleaseFailed
	}
	if release(m.Context, h).Outcome == history.Info {
		return
	}
	m.visit()
	m.Release(other)
}
