package mixed

import (
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
)

// forcedSequences release locks by force: the next operation of the holder reaches servers that no longer know its
// hold. They use the client's own key.
func forcedSequences() []sequence {
	needs := promise.ForceRelease
	return []sequence{
		{name: "released by force", needs: needs, run: forced},
		{name: "renewed after a release by force", needs: needs.With(promise.Renew), run: forcedRenewal},
		{name: "some permits released by force", needs: promise.ForceReleasePermits, run: forcedSome},
	}
}

// takeOwn acquires the client's own key, and releases it by force.
func (m *mix) takeOwn(lease time.Duration) session.Hold {
	m.Key = m.OwnKey
	h := m.Acquire(m.request(m.NewOwner(), lease))
	if !h.Granted() {
		return h
	}
	m.PauseInHold()
	if m.forceOwn() != history.OK {
		m.Release(h)
		return session.Hold{}
	}
	return h
}

// forceOwn releases the client's own key by force. See [mix.spoiled].
func (m *mix) forceOwn() history.Type {
	outcome := m.Session.ForceRelease(m.Context, m.OwnKey).Outcome
	m.spoiled = m.spoiled || outcome == history.Info
	return outcome
}

// forced releases a key by force, and then again, with nobody or another owner in between.
func forced(m *mix) {
	h := m.takeOwn(m.Lease())
	if !h.Granted() {
		return
	}
	next := m.sometimes(m.Try, m.newRequest)
	m.Release(h)
	m.visit()
	if m.Release(next); !next.Granted() {
		m.forceOwn() // nobody holds it
	}
	m.visit()
}

// forcedRenewal renews a hold that was taken away, and that another owner may have by now.
func forcedRenewal(m *mix) {
	lease := m.Lease()
	long := max(lease, time.Second)
	h := m.takeOwn(long)
	if !h.Granted() {
		return
	}
	next := m.sometimes(m.Try, func() client.Acquire { return m.request(m.NewOwner(), long) })
	m.Session.Renew(m.Context, h, lease)
	m.visit()
	m.PauseInHold()
	m.visit()
	m.Release(next)
	m.Release(h)
	m.visit()
}

// forcedSome releases some of the permits of one acquire by force, which ends the hold: the next renewal and the
// release are refused, and the release returns the rest, once.
func forcedSome(m *mix) {
	m.Key = m.OwnKey
	a := m.Writing(m.NewOwner(), max(m.Lease(), time.Second))
	if a.Limit < 2 {
		return
	}
	a.Permits = 2 + m.Rand.IntN(a.Limit-1)
	h := m.Acquire(a)
	if !h.Granted() {
		return
	}
	m.PauseInHold()
	some := 1 + m.Rand.IntN(a.Permits-1)
	if m.Session.ForceReleasePermits(m.Context, h, some).Outcome != history.OK {
		m.Release(h)
		return
	}
	next := m.sometimes(m.Try, func() client.Acquire {
		a.Owner, a.Permits = m.NewOwner(), some
		return a
	})
	if m.Can.Has(promise.Renew) && m.Chance(2) {
		m.Session.Renew(m.Context, h, a.Lease)
	}
	m.PauseInHold()
	m.Release(h)
	m.takeAll()
	m.Release(next)
}

// takeAll takes permits one by one until one is refused, and releases them: no more may be granted than exist.
func (m *mix) takeAll() {
	var holds []session.Hold
	for n := m.Limit(); n >= 0 && !m.Over(); n-- {
		a := m.Writing(m.NewOwner(), max(m.Lease(), time.Second))
		a.Permits = 1
		h := m.Try(a)
		if !h.Granted() {
			break
		}
		holds = append(holds, h)
	}
	for _, h := range holds {
		m.Release(h)
	}
}
