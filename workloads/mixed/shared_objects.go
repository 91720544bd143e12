package mixed

import (
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/session"
)

// programSequences are about the records of a lock object about all holds of a program. They belong to workloads whose
// clients share lock objects (Params.PerInstance).
func programSequences() []sequence {
	needs := promise.Watchdog | promise.ReportsLoss | promise.ForceRelease
	return []sequence{
		{name: "released by force while it is renewed", needs: needs, run: forcedWhileRenewed},
		{name: "one of several released by force", needs: needs, run: forcedOneOfSeveral},
	}
}

// forcedWhileRenewed leaves a hold that was released by force to the lock that renews it, while another owner perhaps
// acquires it: the lock has to notice, and must not bring the hold back.
func forcedWhileRenewed(m *mix) {
	h := m.takeOwn(0)
	if !h.Granted() {
		return
	}
	next := m.sometimes(m.Try, func() client.Acquire { return m.request(m.NewOwner(), 0) })
	m.outlive(h)
	m.visit()
	m.Release(h)
	m.Release(next)
	m.visit()
}

// forcedOneOfSeveral acquires several keys at almost the same time, so that one request renews them, and releases its
// own key by force: that hold must be lost, and the others kept as long as the client works.
func forcedOneOfSeveral(m *mix) {
	keys := append([]string{m.OwnKey}, m.Keys...)
	m.Rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var holds []session.Hold
	own := false
	for _, key := range keys {
		m.Key = key
		if h := m.Try(m.request(m.NewOwner(), 0)); h.Granted() {
			holds = append(holds, h)
			own = own || key == m.OwnKey
		}
	}
	if m.Key = m.OwnKey; own && m.forceOwn() == history.OK && !m.Over() {
		m.outlive(holds[0])
	}
	for _, h := range holds {
		m.Key = h.Key
		m.visit()
		m.Release(h)
	}
}
