package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file leaves out the refused tries that do not prove that the lock was held, before a search for a legal order.

// explained reports whether refused try i is one that does not need a holder: a grant that was undone explains it, or a
// quorum whose votes may have split.
func (k *keyOps) explained(i int32) bool {
	if len(k.undone) == 0 && !k.quorum {
		return false
	}
	_, open := slices.BinarySearch(k.busy, i)
	return !open
}

// withoutUndone are the refused tries that no grant that was undone explains.
func (v *view) withoutUndone(busy []int32, undone []segment) []int32 {
	if len(undone) == 0 || len(busy) == 0 {
		return busy
	}
	var kept []int32
	for i, s := range refsAt(v.h.Spans, busy) {
		if c := (outageWindows{undone}); !c.touches(segment{s.Call, s.Return}) {
			kept = append(kept, i)
		}
	}
	return kept
}

// excuseRefusals leaves out the tries that a quorum refused during or soon after a fault of the network: what an
// acquire that failed left on a minority of the servers may have refused them, together with servers that did not
// reply. It also leaves out those that overlap with another request for the key, or come soon after one that failed:
// the votes of the servers may split, so that nobody is granted the lock.
func (v *view) excuseRefusals(keys []keyOps, o Options) {
	var away []segment
	for _, f := range v.faultTimes() {
		if f.mayAffect(history.AffectsTraffic) {
			away = append(away, segment{f.from, later(f.until, o.slack())})
		}
	}
	for _, k := range refs(keys) {
		k.undone = append(k.undone, away...)
		k.quorum = true
		k.busy = v.withoutRivals(k, v.withoutUndone(k.busy, k.undone), o.slack())
	}
}

// withoutRivals are the refused tries of a key that overlap with no other request for it. The votes that a failed
// request got may last for slack.
func (v *view) withoutRivals(k *keyOps, busy []int32, slack time.Duration) []int32 {
	if len(busy) == 0 {
		return busy
	}
	var all []occupancy
	for _, s := range refsAt(v.h.Spans, k.spans) {
		if s.Op == history.OpRelease {
			continue
		}
		until := s.Return
		if s.Outcome == history.Fail {
			until = later(until, slack)
		}
		all = append(all, newOccupancy(s, s.Call, until))
	}
	sums := newOccupancySums(all)
	return slices.DeleteFunc(slices.Clone(busy), func(i int32) bool {
		s := &v.h.Spans[i]
		return sums.in(segment{s.Call, s.Return}).count > 1 // more than the try itself
	})
}
