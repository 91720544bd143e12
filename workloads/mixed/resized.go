package mixed

import (
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// sizedSequences are about how many permits a semaphore has.
func sizedSequences() []sequence {
	needs := promise.Permits
	return []sequence{
		{name: "more permits than there are", needs: needs.With(promise.RefusesExcessPermits), run: tooMany},
		{name: "resize", needs: needs.With(promise.ManagesPermits), run: resize},
		{name: "permits added and removed", needs: needs.With(promise.ManagesPermits), run: change},
		{name: "drain", needs: needs.With(promise.ManagesPermits), run: drain},
	}
}

// tooMany waits for more permits than there are.
func tooMany(m *mix) {
	a := m.newRequest()
	a.Permits = a.Limit + 1 + m.Rand.IntN(2)
	a.Wait = workload.Grain + m.Random(2*m.Params.Hold)
	m.Release(m.Await(a))
}

// resize changes the size of a semaphore that no other client uses, up and down, while some permits are held, and
// asks for all there are. In the end it has its usual size.
func resize(m *mix) {
	m.Key = m.OwnKey
	var holds []session.Hold
	for range 2 + m.Rand.IntN(3) {
		size := 1 + m.Rand.IntN(2*m.Limit())
		if m.Session.Resize(m.Context, m.Key, size).Outcome != history.OK {
			break
		}
		a := m.newRequest()
		a.Permits = 1 + m.Rand.IntN(size)
		if h := m.Try(a); h.Granted() {
			holds = append(holds, h)
		}
		m.PauseInHold()
		m.visit()
	}
	for _, h := range holds {
		m.Release(h)
		m.visit()
	}
	m.Session.Resize(m.Context, m.Key, m.Limit())
	m.Release(m.Try(m.newRequest()))
}

// change adds permits to a semaphore that no other client uses, and removes some, sometimes more than there are, while
// some are held. In the end it has its usual size.
func change(m *mix) {
	m.Key = m.OwnKey
	size := m.Limit()
	if m.Session.Resize(m.Context, m.Key, size).Outcome != history.OK {
		return
	}
	a := m.newRequest()
	a.Permits = 1 + m.Rand.IntN(size)
	h := m.Try(a)
	for range 2 + m.Rand.IntN(6) {
		m.Pause(workload.Grain)
		by := 1 + m.Rand.IntN(m.Limit())
		if m.Chance(2) {
			by = -1 - m.Rand.IntN(size+2)
		}
		answer := m.Session.ChangePermits(m.Context, m.Key, by)
		if answer.Outcome == history.Info || m.Over() {
			break
		}
		if answer.Outcome == history.OK {
			size = max(0, size+by)
		}
		m.visit()
	}
	m.Release(h)
	m.Session.Resize(m.Context, m.Key, m.Limit())
}

// drain takes all permits that are free, on a key of its own while some are held, and asks for one more.
func drain(m *mix) {
	a := m.newRequest()
	a.Permits = 1
	h := m.sometimes(m.Try, func() client.Acquire { return a })
	a.Owner = m.NewOwner()
	all, answer := m.Session.Drain(m.Context, a)
	m.PauseInHold()
	m.visit()
	if answer.Outcome == history.OK {
		m.Release(all)
	}
	m.Release(h)
}
