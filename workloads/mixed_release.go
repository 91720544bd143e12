package workloads

import (
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// releaseSequences are about releases of what the owner does not hold.
func releaseSequences() []sequence {
	return []sequence{
		{name: "released twice", run: releasedTwice},
		{name: "release of nothing", run: releaseNothing},
		{name: "release of a caller that has given up", needs: client.Capabilities{client.Detached}, run: releaseCanceled},
		{name: "block of code", needs: client.Capabilities{client.Scoped, client.ReportsLoss}, run: scoped},
		{name: "released twice while nested", needs: client.Capabilities{client.Reentrant}, run: releasedTooOften},
	}
}

// releasedTwice releases again, before or after another owner has acquired the lock.
func releasedTwice(m *mix) {
	h, ok := m.acquire(m.request(m.owner(), m.lease()))
	if !ok {
		return
	}
	m.wait()
	if !m.leave(h) {
		return
	}
	other, taken := Hold{}, false
	if m.chance(2) {
		other, taken = m.acquire(m.writing(m.owner(), m.lease()))
	}
	m.Session.Release(m.ctx, h)
	if taken {
		m.visit()
		m.Session.Release(m.ctx, other)
	}
}

// releaseCanceled releases when the context of its caller has ended, as a deferred release often does.
func releaseCanceled(m *mix) {
	h, ok := m.acquire(m.request(m.owner(), m.lease()))
	if !ok {
		return
	}
	m.wait()
	if m.Session.releaseCanceled(m.ctx, h).Outcome != history.Info {
		m.visit()
	}
}

// releaseNothing releases for an owner that never held the lock, while another one does.
func releaseNothing(m *mix) {
	h, ok := m.acquire(m.request(m.owner(), m.lease()))
	if !ok {
		return
	}
	stranger := h
	stranger.Owner, stranger.Token = m.owner(), 0
	m.Session.Release(m.ctx, stranger)
	m.visit()
	m.wait()
	m.Session.Release(m.ctx, h)
}

// releasedTooOften releases once more than it has acquired.
func releasedTooOften(m *mix) {
	a := m.request(m.owner(), m.lease())
	h, ok := m.acquire(a)
	if !ok {
		return
	}
	_, again := m.enter(a)
	if !m.leave(h) {
		return
	}
	if again {
		m.visit()
		if !m.leave(h) {
			return
		}
	}
	m.Session.Release(m.ctx, h)
	m.visit()
}

// scoped holds the lock for a block of code. The block may end with an error, or after its lease, when another owner
// may hold the lock.
func scoped(m *mix) {
	a := m.request(m.owner(), m.short())
	a.Scoped = true
	h, ok := m.acquire(a)
	if !ok {
		return
	}
	m.visit()
	other, taken := Hold{}, false
	if m.chance(2) {
		m.Session.Work(m.ctx, h, a.Lease+grain)
		other, taken = m.acquire(m.writing(m.owner(), m.lease()))
	}
	release := m.Session.Release
	if m.chance(2) {
		release = m.Session.releaseFailed
	}
	if release(m.ctx, h).Outcome == history.Info {
		return
	}
	m.visit()
	if taken {
		m.Session.Release(m.ctx, other)
	}
}
