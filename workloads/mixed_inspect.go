package workloads

import (
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// inspectSequences ask who holds the lock.
func inspectSequences() []sequence {
	needs := client.Capabilities{client.CanInspect}
	return []sequence{
		{name: "inspected", needs: needs, run: inspected},
		{name: "guarded", needs: client.Capabilities{client.Guards}, run: guarded},
		{name: "inspected while nested", needs: needs.With(client.Reentrant), run: inspectedNested},
	}
}

// inspect asks who holds the lock. Nothing else of the client happens at the same instant, see tryOnce.
func (m *mix) inspect() {
	m.pause(grain)
	m.Session.Inspect(m.ctx, m.key)
	m.pause(grain)
}

// inspected asks before, while and after it holds the lock, and after it has renewed it.
func inspected(m *mix) {
	m.inspect()
	h, ok := m.acquire(m.writing(m.owner(), m.lease()))
	if !ok {
		return
	}
	m.inspect()
	if m.Can.Has(client.CanRenew) && m.chance(2) {
		if m.Session.Renew(m.ctx, h, m.otherLease(m.Params.Lease)).Outcome != history.OK {
			m.Session.Release(m.ctx, h)
			return
		}
		m.inspect()
	}
	m.wait()
	m.inspect()
	if m.leave(h) {
		m.inspect()
	}
}

// inspectedNested asks at every depth, with leases of different length.
func inspectedNested(m *mix) {
	holds := m.enterNested(m.writing(m.owner(), m.lease()), m.inspect)
	for n := len(holds) - 1; n >= 0; n-- {
		if !m.leave(holds[n]) {
			return
		}
		m.inspect()
	}
}

// guarded presents the token of a hold, twice perhaps, and again when another owner may have presented a greater one.
func guarded(m *mix) {
	h, ok := m.acquire(m.writing(m.owner(), m.lease()))
	if !ok {
		return
	}
	m.Session.Guard(m.ctx, h)
	if m.wait(); m.chance(2) {
		m.Session.Guard(m.ctx, h)
	}
	if !m.leave(h) {
		return
	}
	if next, ok := m.acquire(m.writing(m.owner(), m.lease())); ok {
		m.Session.Guard(m.ctx, next)
		m.Session.Guard(m.ctx, h)
		m.Session.Release(m.ctx, next)
	}
}
