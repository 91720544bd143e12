package workloads

import (
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// sizedSequences are about how many permits a semaphore has.
func sizedSequences() []sequence {
	needs := client.Capabilities{client.HasPermits}
	return []sequence{
		{name: "more permits than there are", needs: needs.With(client.RefusesExcess), run: tooMany},
		{name: "resize", needs: needs.With(client.CanResize), run: resize},
		{name: "permits added and removed", needs: needs.With(client.CanResize, client.CanChangePermits), run: change},
		{name: "drain", needs: needs.With(client.CanDrain), run: drain},
	}
}

// tooMany waits for more permits than there are.
func tooMany(m *mix) {
	a := m.asks()
	a.Permits = a.Limit + 1 + m.Rand.IntN(2)
	a.Wait = grain + random(m.Env, 2*m.Params.Hold)
	m.release(m.await(a))
}

// resize changes the size of a semaphore that no other client uses, up and down, while some permits are held, and
// asks for all there are. In the end it has its usual size.
func resize(m *mix) {
	m.key = m.own
	var holds []Hold
	for range 2 + m.Rand.IntN(3) {
		size := 1 + m.Rand.IntN(2*m.limit())
		if m.Session.Resize(m.ctx, m.key, size).Outcome != history.OK {
			break
		}
		a := m.asks()
		a.Permits = 1 + m.Rand.IntN(size)
		if h := m.try(a); h.held() {
			holds = append(holds, h)
		}
		m.wait()
		m.visit()
	}
	for _, h := range holds {
		m.release(h)
		m.visit()
	}
	m.Session.Resize(m.ctx, m.key, m.limit())
	m.release(m.try(m.asks()))
}

// change adds permits to a semaphore that no other client uses, and removes some, sometimes more than there are, while
// some are held. In the end it has its usual size.
func change(m *mix) {
	m.key = m.own
	size := m.limit()
	if m.Session.Resize(m.ctx, m.key, size).Outcome != history.OK {
		return
	}
	a := m.asks()
	a.Permits = 1 + m.Rand.IntN(size)
	h := m.try(a)
	for range 2 + m.Rand.IntN(6) {
		m.pause(grain)
		by := 1 + m.Rand.IntN(m.limit())
		if m.chance(2) {
			by = -1 - m.Rand.IntN(size+2)
		}
		answer := m.Session.ChangePermits(m.ctx, m.key, by)
		if answer.Outcome == history.Info || m.over() {
			break
		}
		if answer.Outcome == history.OK {
			size = max(0, size+by)
		}
		m.visit()
	}
	m.release(h)
	m.Session.Resize(m.ctx, m.key, m.limit())
}

// drain takes all permits that are free, on a key of its own while some are held, and asks for one more.
func drain(m *mix) {
	a := m.asks()
	a.Permits = 1
	h := m.sometimes(m.try, func() client.Acquire { return a })
	a.Owner = m.owner()
	all, answer := m.Session.Drain(m.ctx, a)
	m.wait()
	m.visit()
	if answer.Outcome == history.OK {
		m.release(all)
	}
	m.release(h)
}
