package checker

import (
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeRequestsNeverGrantable finds the acquires whose wait ran out although no state of the lock could have granted
// them, where the lock states that it refuses such a request at once ([promise.RefusesExcessPermits], RefusesUpgrade,
// RefusesReentry): a request for more permits than there ever were during it; a request to write by an owner that was a
// reader, with a valid promise, during all of it; an acquire or a try of a lock that its owner holds already. A fault
// that may have changed the data of the servers excuses the lock.
func (v *view) judgeRequestsNeverGrantable(o Options, found *findings) {
	if !o.states(promise.RefusesExcessPermits) && !o.states(promise.RefusesUpgrade) && !o.states(promise.RefusesReentry) {
		return
	}
	refused := v.h.TimedOut
	if o.states(promise.RefusesReentry) {
		refused = slices.Concat(refused, v.busyTries())
	}
	dis := v.disturbances(o)
	for i, s := range refsAt(v.h.Spans, refused) {
		during := segment{s.Call, s.Return}
		never := false
		if v.h.Limit(s.Key) > 0 {
			_, most := v.sizesIn(s.Key, during)
			never = o.states(promise.RefusesExcessPermits) && int64(s.Permits) > most
		} else if s.Write && o.states(promise.RefusesUpgrade) && v.ownerOrder[s.Owner] == ordSequential {
			never = v.holdsThroughout(s.Owner, s.Key, during, true)
		} else if o.states(promise.RefusesReentry) && v.ownerOrder[s.Owner] == ordSequential {
			never = v.holdsThroughout(s.Owner, s.Key, during, !s.Write)
		}
		if never && !dis.mayAffect(segment{0, s.Return}, anyClient, history.AffectsData) {
			found.add(finding{rule: waitedNeverGrantable, x: none, y: i, start: s.Call, end: s.Return})
		}
	}
}

// busyTries returns the tries that were refused because the lock was held.
func (v *view) busyTries() (found []int32) {
	for _, i := range v.rare {
		if v.h.Spans[i].Busy {
			found = append(found, i)
		}
	}
	return found
}

// holdsThroughout reports whether an owner certainly held the lock during all of s, in the given mode and not in the
// other one.
func (v *view) holdsThroughout(owner, key int32, s segment, reading bool) bool {
	holds := false
	for _, h := range v.byOwner().at(owner, key, s.from) {
		switch {
		case h.until < s.from:
			continue
		case h.reader != reading:
			return false
		}
		holds = holds || h.until >= s.until && h.promisedAt(s.from) && h.promisedAt(s.until)
	}
	return holds
}
