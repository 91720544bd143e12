package workloads

import (
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// forcedSequences release locks by force: the next operation of the holder reaches servers that no longer know its
// hold. They use the client's own key.
func forcedSequences() []sequence {
	needs := client.Capabilities{client.CanForceRelease}
	return []sequence{
		{name: "released by force", needs: needs, run: forced},
		{name: "renewed after a release by force", needs: needs.With(client.CanRenew), run: forcedRenewal},
		{name: "some permits released by force", needs: client.Capabilities{client.CanForcePermits}, run: forcedSome},
	}
}

// takeOwn acquires the client's own key, and releases it by force.
func (m *mix) takeOwn(lease time.Duration) Hold {
	m.key = m.own
	h := m.acquire(m.request(m.owner(), lease))
	if !h.held() {
		return h
	}
	m.wait()
	if m.Session.ForceRelease(m.ctx, m.key).Outcome != history.OK {
		m.release(h)
		return Hold{}
	}
	return h
}

// forced releases a key by force, and then again, with nobody or another owner in between.
func forced(m *mix) {
	h := m.takeOwn(m.lease())
	if !h.held() {
		return
	}
	next := m.sometimes(m.try, m.asks)
	m.release(h)
	m.visit()
	if m.release(next); !next.held() {
		m.Session.ForceRelease(m.ctx, m.key) // nobody holds it
	}
	m.visit()
}

// forcedRenewal renews a hold that was taken away, and that another owner may have by now.
func forcedRenewal(m *mix) {
	lease := m.lease()
	long := max(lease, time.Second)
	h := m.takeOwn(long)
	if !h.held() {
		return
	}
	next := m.sometimes(m.try, func() client.Acquire { return m.request(m.owner(), long) })
	m.Session.Renew(m.ctx, h, lease)
	m.visit()
	m.wait()
	m.visit()
	m.release(next)
	m.release(h)
	m.visit()
}

// forcedSome releases some of the permits of one acquire by force, which ends the hold: the next renewal and the
// release are refused, and the release returns the rest, once.
func forcedSome(m *mix) {
	m.key = m.own
	a := m.writing(m.owner(), max(m.lease(), time.Second))
	if a.Limit < 2 {
		return
	}
	a.Permits = 2 + m.Rand.IntN(a.Limit-1)
	h := m.acquire(a)
	if !h.held() {
		return
	}
	m.wait()
	some := 1 + m.Rand.IntN(a.Permits-1)
	if m.Session.forceSome(m.ctx, h, some).Outcome != history.OK {
		m.release(h)
		return
	}
	next := m.sometimes(m.try, func() client.Acquire {
		a.Owner, a.Permits = m.owner(), some
		return a
	})
	if m.Can.Has(client.CanRenew) && m.chance(2) {
		m.Session.Renew(m.ctx, h, a.Lease)
	}
	m.wait()
	m.release(h)
	m.takeAll()
	m.release(next)
}

// takeAll takes permits one by one until one is refused, and releases them: no more may be granted than exist.
func (m *mix) takeAll() {
	var holds []Hold
	for n := m.limit(); n >= 0 && !m.over(); n-- {
		a := m.writing(m.owner(), max(m.lease(), time.Second))
		a.Permits = 1
		h := m.try(a)
		if !h.held() {
			break
		}
		holds = append(holds, h)
	}
	for _, h := range holds {
		m.release(h)
	}
}
