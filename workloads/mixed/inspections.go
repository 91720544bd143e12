package mixed

import (
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// inspectSequences ask who holds the lock.
func inspectSequences() []sequence {
	needs := promise.Inspect
	return []sequence{
		{name: "inspected", needs: needs, run: inspected},
		{name: "guarded", needs: promise.Guard, run: holding((*mix).NewWrite, guarded)},
		{name: "guarded readers", needs: promise.Guard | promise.FencedReaders,
			run: holding((*mix).NewRead, guardedReaders)},
		{name: "owner inspected", needs: promise.InspectOwner,
			run: holding((*mix).sharing, ownerInspected)},
		{name: "owner of several levels inspected", needs: promise.InspectOwner | promise.Reentrant,
			run: ownerNested},
		{name: "waiters counted", needs: promise.CountWaiters,
			run: holding((*mix).newRequest, waitersCounted)},
		{name: "inspected while nested", needs: needs.With(promise.Reentrant), run: inspectedNested},
	}
}

// inspect asks who holds the lock. Nothing else of the client happens at the same instant, see tryOnce.
func (m *mix) inspect() {
	m.Pause(workload.Grain)
	m.Session.Inspect(m.Context, m.Key)
	m.Pause(workload.Grain)
}

// inspected asks before, while and after it holds the lock, and after it has renewed it.
func inspected(m *mix) {
	m.inspect()
	h := m.Acquire(m.NewWrite())
	if !h.Granted() {
		return
	}
	m.inspect()
	if m.Can.Has(promise.Renew) && m.Chance(2) {
		if m.Session.Renew(m.Context, h, m.otherLease(m.Params.Lease)).Outcome != history.OK {
			m.Release(h)
			return
		}
		m.inspect()
	}
	m.PauseInHold()
	m.inspect()
	if m.leave(h) {
		m.inspect()
	}
}

// inspectedNested asks at every depth, with leases of different length.
func inspectedNested(m *mix) {
	holds := m.enterNested(m.NewWrite(), m.inspect)
	for n := len(holds) - 1; n >= 0; n-- {
		if !m.leave(holds[n]) {
			return
		}
		m.inspect()
	}
}

// guarded presents the token of a hold, twice perhaps, and again when another owner may have presented a greater one.
func guarded(m *mix, h session.Hold) {
	m.Session.Guard(m.Context, h)
	if m.PauseInHold(); m.Chance(2) {
		m.Session.Guard(m.Context, h)
	}
	if !m.leave(h) {
		return
	}
	if next := m.Acquire(m.NewWrite()); next.Granted() {
		m.Session.Guard(m.Context, next)
		m.Session.Guard(m.Context, h)
		m.Release(next)
	}
}

// guardedReaders presents the tokens of two readers that read together, the later one first: neither is older than the
// other. When a writer has presented a greater one, a reader that has released is refused.
func guardedReaders(m *mix, first session.Hold) {
	if second := m.Try(m.NewRead()); second.Granted() {
		m.Session.Guard(m.Context, second)
		m.Session.Guard(m.Context, first)
		m.Release(second)
	}
	m.Session.Guard(m.Context, first)
	if m.PauseInHold(); !m.leave(first) {
		return
	}
	if next := m.Acquire(m.NewWrite()); next.Granted() {
		m.Session.Guard(m.Context, next)
		m.Session.Guard(m.Context, first)
		m.Release(next)
	}
}

// ask asks for the holds of the owner of h, if that can be done. Nothing else of the client happens at the same
// instant.
func (m *mix) ask(h session.Hold) {
	if m.Can.Has(promise.InspectOwner) {
		m.Pause(workload.Grain)
		m.Session.InspectOwner(m.Context, h)
		m.Pause(workload.Grain)
	}
}

// sharing is a request that leaves room for others, if the lock can be shared.
func (m *mix) sharing() client.Acquire {
	a := m.NewWrite()
	switch {
	case m.Can.Has(promise.ReadWrite) && !m.Chance(4):
		a.Mode = "read"
	case m.Can.Has(promise.Permits):
		a.Permits = 1 + m.Rand.IntN(m.Limit())
	}
	return a
}

// ownerInspected asks for the holds of an owner while it has some and after the release, perhaps beside another owner.
func ownerInspected(m *mix, h session.Hold) {
	m.ask(h)
	other := m.Try(m.sharing())
	if other.Granted() {
		m.ask(other)
	}
	m.PauseInHold()
	if m.leave(h) {
		m.ask(h)
	}
	if other.Granted() && m.leave(other) {
		m.ask(other)
	}
}

// ownerNested inspects at every depth how often an owner holds the lock.
func ownerNested(m *mix) {
	a := m.NewWrite()
	if m.Can.Has(promise.ReadWrite) && m.Chance(2) {
		a.Mode = "read"
	}
	holds := m.enterNested(a, func() {})
	for n := len(holds) - 1; n >= 0; n-- {
		m.ask(holds[n])
		if !m.leave(holds[n]) {
			return
		}
	}
}

// waitersCounted counts the waiters of a lock while it is held, after a refused try, and when it is released.
func waitersCounted(m *mix, h session.Hold) {
	m.visit()
	m.Session.CountWaiters(m.Context, m.Key)
	if m.Chance(2) {
		m.Pause(workload.BeyondQueue)
		m.Session.CountWaiters(m.Context, m.Key)
	}
	m.Release(h)
	m.Session.CountWaiters(m.Context, m.Key)
}
