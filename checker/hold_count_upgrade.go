package checker

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeUpgrades finds owners that were granted the lock to write while they certainly read, at a lock that states that
// it refuses that: other readers may have held it as well. If it refuses every re-entry, they were not to be granted it
// to read while they wrote, either. A fault that may have changed the servers' data excuses the lock: the first hold
// may be lost.
func (c *holdCounts) judgeUpgrades() {
	if !c.o.states(promise.RefusesUpgrade) && !c.o.states(promise.RefusesReentry) {
		return
	}
	dis := c.disturbances(c.o)
	for i, h := range refs(c.holds) {
		s := &c.h.Spans[h.span]
		during := segment{s.Call, s.Return}
		if h.reader && !c.o.states(promise.RefusesReentry) || !h.inner || c.ownerOrder[h.owner] != ordSequential ||
			!c.holdsThroughout(h.owner, h.key, during, !h.reader) ||
			dis.mayAffect(segment{0, s.Return}, anyClient, history.AffectsData) {
			continue
		}
		c.found.add(finding{rule: upgraded, x: i, y: h.span, start: s.Return, end: s.Return})
	}
}
