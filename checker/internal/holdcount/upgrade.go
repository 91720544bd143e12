package holdcount

import (
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeUpgrades finds owners that were granted the lock to write while they certainly read, at a lock that states that
// it refuses that: other readers may have held it as well. If it refuses every re-entry, they were not to be granted it
// to read while they wrote, either. A fault that may have changed the servers' data excuses the lock: the first hold
// may be lost.
func (c *holdCounts) judgeUpgrades() {
	if !c.o.States(promise.RefusesUpgrade) && !c.o.States(promise.RefusesReentry) {
		return
	}
	dis := c.Disturbances(c.o)
	for i, h := range refs.All(c.Holds) {
		s := &c.H.Spans[h.Span]
		during := segment.Of(s.Call, s.Return)
		if h.Reader && !c.o.States(promise.RefusesReentry) || !h.Inner || c.OwnerOrder[h.Owner] != ledger.OrdSequential ||
			!c.HoldsThroughout(h.Owner, h.Key, during, !h.Reader) ||
			dis.MayAffect(segment.Of(0, s.Return), excuse.AnyClient, history.AffectsData) {
			continue
		}
		c.found.Add(finding.Finding{Rule: upgraded, X: i, Y: h.Span, Start: s.Return, End: s.Return})
	}
}
