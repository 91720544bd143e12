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
		{name: "guarded", needs: client.Capabilities{client.Guards}, run: holding((*mix).writes, guarded)},
		{name: "guarded readers", needs: client.Capabilities{client.Guards, client.FencedReaders},
			run: holding((*mix).reads, guardedReaders)},
		{name: "owner inspected", needs: client.Capabilities{client.InspectsOwner},
			run: holding((*mix).sharing, ownerInspected)},
		{name: "owner of several levels inspected", needs: client.Capabilities{client.InspectsOwner, client.Reentrant},
			run: ownerNested},
		{name: "waiters counted", needs: client.Capabilities{client.CountsWaiters},
			run: holding((*mix).asks, waitersCounted)},
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
	h := m.acquire(m.writes())
	if !h.held() {
		return
	}
	m.inspect()
	if m.Can.Has(client.CanRenew) && m.chance(2) {
		if m.Session.Renew(m.ctx, h, m.otherLease(m.Params.Lease)).Outcome != history.OK {
			m.release(h)
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
	holds := m.enterNested(m.writes(), m.inspect)
	for n := len(holds) - 1; n >= 0; n-- {
		if !m.leave(holds[n]) {
			return
		}
		m.inspect()
	}
}

// guarded presents the token of a hold, twice perhaps, and again when another owner may have presented a greater one.
func guarded(m *mix, h Hold) {
	m.Session.Guard(m.ctx, h)
	if m.wait(); m.chance(2) {
		m.Session.Guard(m.ctx, h)
	}
	if !m.leave(h) {
		return
	}
	if next := m.acquire(m.writes()); next.held() {
		m.Session.Guard(m.ctx, next)
		m.Session.Guard(m.ctx, h)
		m.release(next)
	}
}

// guardedReaders presents the tokens of two readers that read together, the later one first: neither is older than the
// other. When a writer has presented a greater one, a reader that has released is refused.
func guardedReaders(m *mix, first Hold) {
	if second := m.try(m.reads()); second.held() {
		m.Session.Guard(m.ctx, second)
		m.Session.Guard(m.ctx, first)
		m.release(second)
	}
	m.Session.Guard(m.ctx, first)
	if m.wait(); !m.leave(first) {
		return
	}
	if next := m.acquire(m.writes()); next.held() {
		m.Session.Guard(m.ctx, next)
		m.Session.Guard(m.ctx, first)
		m.release(next)
	}
}

// ask asks what the owner of h holds, if that can be done. Nothing else of the client happens at the same instant.
func (m *mix) ask(h Hold) {
	if m.Can.Has(client.InspectsOwner) {
		m.pause(grain)
		m.Session.InspectOwner(m.ctx, h)
		m.pause(grain)
	}
}

// sharing is a request that leaves room for others, if the lock can be shared.
func (m *mix) sharing() client.Acquire {
	a := m.writes()
	switch {
	case m.Can.Has(client.SharesReads) && !m.chance(4):
		a.Mode = "read"
	case m.Can.Has(client.HasPermits):
		a.Permits = 1 + m.Rand.IntN(m.limit())
	}
	return a
}

// ownerInspected asks what an owner holds while it does and after it has released it, perhaps beside another owner.
func ownerInspected(m *mix, h Hold) {
	m.ask(h)
	other := m.try(m.sharing())
	if other.held() {
		m.ask(other)
	}
	m.wait()
	if m.leave(h) {
		m.ask(h)
	}
	if other.held() && m.leave(other) {
		m.ask(other)
	}
}

// ownerNested inspects at every depth how often an owner holds the lock.
func ownerNested(m *mix) {
	a := m.writes()
	if m.Can.Has(client.SharesReads) && m.chance(2) {
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
func waitersCounted(m *mix, h Hold) {
	m.visit()
	m.Session.CountWaiters(m.ctx, m.key)
	if m.chance(2) {
		m.pause(beyondQueue)
		m.Session.CountWaiters(m.ctx, m.key)
	}
	m.release(h)
	m.Session.CountWaiters(m.ctx, m.key)
}
