package checker

import (
	"slices"

	"github.com/lockchaos/lockchaos/history"
)

// judgeVain finds the acquires whose wait ran out although they could never be granted, at a lock that states that it
// refuses such a request at once: for more permits than there were at any time of it, to write by an owner that reads
// and was promised that for all of it, and, of an acquire or a try, for what the owner holds already. A fault that may
// have changed what servers keep excuses the lock.
func (v *view) judgeVain(o Options, found *findings) {
	if !o.RefusesExcess && !o.RefusesUpgrade && !o.RefusesReentry {
		return
	}
	refused := v.h.TimedOut
	if o.RefusesReentry {
		refused = slices.Concat(refused, v.busyTries())
	}
	dis := v.disturbances(o)
	for i, s := range those(v.h.Spans, refused) {
		during := segment{s.Call, s.Return}
		vain := false
		if v.h.Limit(s.Key) > 0 {
			_, most := v.sizesIn(s.Key, during)
			vain = o.RefusesExcess && int64(s.Permits) > most
		} else if s.Write && o.RefusesUpgrade && v.ownerOrder[s.Owner] == sequential {
			vain = v.holdsThroughout(s.Owner, s.Key, during, true)
		} else if o.RefusesReentry && v.ownerOrder[s.Owner] == sequential {
			vain = v.holdsThroughout(s.Owner, s.Key, during, !s.Write)
		}
		if vain && !dis.touch(segment{0, s.Return}, anyClient, history.AffectsData) {
			found.add(finding{rule: waitedInVain, x: none, y: i, start: s.Call, end: s.Return})
		}
	}
}

// busyTries are the tries that were refused because the lock was held.
func (v *view) busyTries() (found []int32) {
	for _, i := range v.rare {
		if v.h.Spans[i].Busy {
			found = append(found, i)
		}
	}
	return found
}

// holdsThroughout reports whether an owner certainly read, or wrote, in all of s, and did not hold the lock in the
// other mode.
func (v *view) holdsThroughout(owner, key int32, s segment, reading bool) bool {
	holds := false
	for _, h := range those(v.holds, v.byKey[key]) {
		switch {
		case h.from > s.from:
			return holds
		case h.owner != owner || h.until < s.from:
		case h.reader != reading:
			return false
		case h.until >= s.until && h.promisedAt(s.from) && h.promisedAt(s.until):
			holds = true
		}
	}
	return holds
}
