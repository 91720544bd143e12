package workloads

import (
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// releaseSequences are about releases of what the owner does not hold.
func releaseSequences() []sequence {
	return []sequence{
		{name: "released twice", run: holding((*mix).asks, releasedTwice)},
		{name: "release of nothing", run: holding((*mix).asks, releaseNothing)},
		{name: "release of a caller that has given up", needs: client.Capabilities{client.Detached},
			run: holding((*mix).asks, releaseCanceled)},
		{name: "block of code", needs: client.Capabilities{client.Scoped, client.ReportsLoss}, run: scoped},
		{name: "released twice while nested", needs: client.Capabilities{client.Reentrant},
			run: holding((*mix).asks, releasedTooOften)},
	}
}

// releasedTwice releases again, before or after another owner has acquired the lock.
func releasedTwice(m *mix, h Hold) {
	m.wait()
	if !m.leave(h) {
		return
	}
	other := m.sometimes(m.acquire, m.writes)
	if m.release(h); other.held() {
		m.visit()
		m.release(other)
	}
}

// releaseCanceled releases when the context of its caller has ended, as a deferred release often does.
func releaseCanceled(m *mix, h Hold) {
	m.wait()
	if m.Session.releaseCanceled(m.ctx, h).Outcome != history.Info {
		m.visit()
	}
}

// releaseNothing releases for an owner that never held the lock, while another one does.
func releaseNothing(m *mix, h Hold) {
	stranger := h
	stranger.Owner, stranger.Token = m.owner(), 0
	m.release(stranger)
	m.visit()
	m.wait()
	m.release(h)
}

// releasedTooOften releases once more than it has acquired.
func releasedTooOften(m *mix, h Hold) {
	again := m.enter(m.again(h))
	if !m.leave(h) {
		return
	}
	if again.held() {
		m.visit()
		if !m.leave(h) {
			return
		}
	}
	m.release(h)
	m.visit()
}

// scoped holds the lock for a block of code. The block may end with an error, or after its lease, when another owner
// may hold the lock.
func scoped(m *mix) {
	a := m.request(m.owner(), m.short())
	a.Scoped = true
	h := m.acquire(a)
	if !h.held() {
		return
	}
	m.visit()
	var other Hold
	if m.chance(2) {
		m.Session.Work(m.ctx, h, a.Lease+grain)
		other = m.acquire(m.writes())
	}
	release := m.Session.Release
	if m.chance(2) {
		release = m.Session.releaseFailed
	}
	if release(m.ctx, h).Outcome == history.Info {
		return
	}
	m.visit()
	m.release(other)
}
