package workloads

import (
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// programSequences are about what a lock object keeps of all holds of a program. They belong to workloads whose clients
// share lock objects (Params.PerInstance).
func programSequences() []sequence {
	needs := client.Capabilities{client.RenewsItself, client.ReportsLoss, client.CanForceRelease}
	return []sequence{
		{name: "released by force while it is renewed", needs: needs, run: forcedWhileRenewed},
		{name: "one of several released by force", needs: needs, run: forcedOneOfSeveral},
	}
}

// forcedWhileRenewed leaves a hold that was released by force to the lock that renews it, while another owner perhaps
// acquires it: the lock has to notice, and must not bring the hold back.
func forcedWhileRenewed(m *mix) {
	h := m.takeOwn(0)
	if !h.held() {
		return
	}
	next := m.sometimes(m.try, func() client.Acquire { return m.request(m.owner(), 0) })
	m.outlive(h)
	m.visit()
	m.release(h)
	m.release(next)
	m.visit()
}

// forcedOneOfSeveral acquires several keys at almost the same time, so that one request renews them, and releases its
// own key by force: that hold must be lost, and the others kept as long as the client works.
func forcedOneOfSeveral(m *mix) {
	keys := append([]string{m.own}, m.keys...)
	m.Rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var holds []Hold
	own := false
	for _, key := range keys {
		m.key = key
		if h := m.try(m.request(m.owner(), 0)); h.held() {
			holds = append(holds, h)
			own = own || key == m.own
		}
	}
	if m.key = m.own; own && m.Session.ForceRelease(m.ctx, m.own).Outcome == history.OK && !m.over() {
		m.outlive(holds[0])
	}
	for _, h := range holds {
		m.key = h.Key
		m.visit()
		m.release(h)
	}
}
