package wakeup

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeRequestsNeverGrantable finds the acquires whose wait ran out although no state of the lock could have granted
// them, where the lock states that it refuses such a request at once ([promise.RefusesExcessPermits], RefusesUpgrade,
// RefusesReentry): a request for more permits than there ever were during it; a request to write by an owner that was a
// reader, with a valid promise, during all of it; an acquire or a try of a lock that its owner holds already. A fault
// that may have changed the data of the servers excuses the lock.
func judgeRequestsNeverGrantable(v *bounds.View, o given.Options, found *finding.Findings) {
	if !o.States(promise.RefusesExcessPermits) && !o.States(promise.RefusesUpgrade) && !o.States(promise.RefusesReentry) {
		return
	}
	refused := v.H.TimedOut
	if o.States(promise.RefusesReentry) {
		refused = slices.Concat(refused, busyTries(v))
	}
	dis := v.Disturbances(o)
	for i, s := range refs.At(v.H.Spans, refused) {
		during := segment.Of(s.Call, s.Return)
		never := false
		if v.H.Limit(s.Key) > 0 {
			_, most := v.SizesIn(s.Key, during)
			never = o.States(promise.RefusesExcessPermits) && int64(s.Permits) > most
		} else if s.Write && o.States(promise.RefusesUpgrade) && v.OwnerOrder[s.Owner] == ledger.OrdSequential {
			never = v.HoldsThroughout(s.Owner, s.Key, during, true)
		} else if o.States(promise.RefusesReentry) && v.OwnerOrder[s.Owner] == ledger.OrdSequential {
			never = v.HoldsThroughout(s.Owner, s.Key, during, !s.Write)
		}
		if never && !dis.MayAffect(segment.Of(0, s.Return), excuse.AnyClient, history.AffectsData) {
			found.Add(finding.Finding{Rule: waitedNeverGrantable, X: refs.None, Y: i, Start: s.Call, End: s.Return})
		}
	}
}

// busyTries returns the tries that were refused because the lock was held.
func busyTries(v *bounds.View) (found []int32) {
	for _, i := range v.Rare {
		if v.H.Spans[i].Busy {
			found = append(found, i)
		}
	}
	return found
}
