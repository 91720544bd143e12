package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
	"github.com/lockchaos/lockchaos/promise"
)

// This file leaves out the refused tries that do not prove that the lock was held, before a search for a legal order.

// explained reports whether refused try i does not need a holder: it is explained by an undone grant, a waiting
// request, or a quorum whose votes may have split.
func (k *keyOps) explained(i int32) bool {
	_, open := slices.BinarySearch(k.busy, i)
	return !open
}

// withoutUndone are the refused tries that no grant that was undone explains.
func (v *view) withoutUndone(busy []int32, undone []segment) []int32 {
	if len(undone) == 0 || len(busy) == 0 {
		return busy
	}
	var kept []int32
	undone = mergedSegments(slices.Clone(undone))
	for i, s := range refsAt(v.h.Spans, busy) {
		if len(within(undone, segment{s.Call, s.Return})) == 0 {
			kept = append(kept, i)
		}
	}
	return kept
}

// excuseRefusals leaves out the tries that were refused while a request waited that the lock may serve first (see
// withoutQueued).
//
// On a quorum it leaves out tries that were refused during or soon after a fault of the network: the remains of a
// failed acquire on a minority of the servers may have refused them, together with servers that did not reply. It also
// leaves out tries that overlap with another request for the key, or come soon after a failed one: the votes of the
// servers may split, so that nobody is granted the lock.
func (v *view) excuseRefusals(keys []keyOps, o Options) {
	for _, k := range refs(keys) {
		k.busy = v.withoutQueued(k, o)
	}
	if o.MayBeDown == 0 {
		return
	}
	var away []segment
	for _, f := range v.faultTimes() {
		if f.mayAffect(history.AffectsTraffic) {
			away = append(away, segment{f.from, later(f.until, o.slack())})
		}
	}
	for _, k := range refs(keys) {
		k.undone = append(k.undone, away...)
		k.busy = v.withoutRivals(k, v.withoutUndone(k.busy, k.undone), o.slack())
	}
}

// withoutQueued are the refused tries of a key during which no acquire waited that the lock may serve first. A fair
// lock serves its waiters first, also waiters that give up later, because a try is a later request than they are (see
// checkOrder). So does a lock with a preference for writers if a writer waits, and a semaphore or a readers-writer lock
// may do so unless it states the contrary.
func (v *view) withoutQueued(k *keyOps, o Options) []int32 {
	fair := o.states(promise.Fair)
	if len(k.busy) == 0 || !fair && (!k.kind.Shared() || o.states(promise.NoHeadOfLineBlocking)) {
		return k.busy
	}
	var waiting []occupancy
	dis := v.disturbances(o)
	for i, s := range refsAt(v.h.Spans, k.spans) {
		if s.Op == history.OpAcquire && (fair || k.kind == search.Semaphore || s.Write) {
			waiting = append(waiting, newOccupancy(s, s.Call, v.queuedUntil(i, dis)))
		}
	}
	sums := newOccupancySums(waiting)
	return slices.DeleteFunc(slices.Clone(k.busy), func(i int32) bool {
		s := &v.h.Spans[i]
		return sums.in(segment{s.Call, s.Return}).count > 0
	})
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
