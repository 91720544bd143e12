package linear

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/waiting"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
	"github.com/lockchaos/lockchaos/promise"
)

// This file leaves out the refused tries that do not prove that the lock was held, before a search for a legal order.

// Explained reports whether refused try i does not need a holder: it is explained by an undone grant, a waiting
// request, or a quorum whose votes may have split.
func (k *KeyOps) Explained(i int32) bool {
	_, open := slices.BinarySearch(k.Busy, i)
	return !open
}

// withoutUndone are the refused tries that no grant that was undone explains.
func withoutUndone(v *bounds.View, busy []int32, undone []segment.Segment) []int32 {
	if len(undone) == 0 || len(busy) == 0 {
		return busy
	}
	var kept []int32
	undone = segment.MergedSegments(slices.Clone(undone))
	for i, s := range refs.At(v.H.Spans, busy) {
		if len(segment.Within(undone, segment.Of(s.Call, s.Return))) == 0 {
			kept = append(kept, i)
		}
	}
	return kept
}

// ExcuseRefusals leaves out the tries that were refused while a request waited that the lock may serve first (see
// withoutQueued).
//
// On a quorum it leaves out tries that were refused during or soon after a fault of the network: the remains of a
// failed acquire on a minority of the servers may have refused them, together with servers that did not reply. It also
// leaves out tries that overlap with another request for the key, or come soon after a failed one: the votes of the
// servers may split, so that nobody is granted the lock.
func ExcuseRefusals(v *bounds.View, keys []KeyOps, o given.Options) {
	for _, k := range refs.All(keys) {
		k.Busy = withoutQueued(v, k, o)
	}
	if o.MayBeDown == 0 {
		return
	}
	var away []segment.Segment
	for _, f := range v.FaultTimes() {
		if f.MayAffect(history.AffectsTraffic) {
			away = append(away, segment.Of(f.From, segment.Later(f.Until, o.Slack())))
		}
	}
	for _, k := range refs.All(keys) {
		k.undone = append(k.undone, away...)
		k.Busy = withoutRivals(v, k, withoutUndone(v, k.Busy, k.undone), o.Slack())
	}
}

// withoutQueued are the refused tries of a key during which no acquire waited that the lock may serve first. A fair
// lock serves its waiters first, also waiters that give up later, because a try is a later request than they are (see
// Check). So does a lock with a preference for writers if a writer waits, and a semaphore or a readers-writer lock
// may do so unless it states the contrary.
func withoutQueued(v *bounds.View, k *KeyOps, o given.Options) []int32 {
	fair := o.States(promise.Fair)
	if len(k.Busy) == 0 || !fair && (!k.Kind.Shared() || o.States(promise.NoHeadOfLineBlocking)) {
		return k.Busy
	}
	var queued []waiting.Occupancy
	dis := v.Disturbances(o)
	for i, s := range refs.At(v.H.Spans, k.Spans) {
		if s.Op == history.OpAcquire && (fair || k.Kind == search.Semaphore || s.Write) {
			queued = append(queued, waiting.NewOccupancy(s, s.Call, v.QueuedUntil(i, dis)))
		}
	}
	sums := waiting.NewOccupancySums(queued)
	return slices.DeleteFunc(slices.Clone(k.Busy), func(i int32) bool {
		s := &v.H.Spans[i]
		return sums.In(segment.Of(s.Call, s.Return)).Count > 0
	})
}

// withoutRivals are the refused tries of a key that overlap with no other request for it. The votes that a failed
// request got may last for slack.
func withoutRivals(v *bounds.View, k *KeyOps, busy []int32, slack time.Duration) []int32 {
	if len(busy) == 0 {
		return busy
	}
	var all []waiting.Occupancy
	for _, s := range refs.At(v.H.Spans, k.Spans) {
		if s.Op == history.OpRelease {
			continue
		}
		until := s.Return
		if s.Outcome == history.Fail {
			until = segment.Later(until, slack)
		}
		all = append(all, waiting.NewOccupancy(s, s.Call, until))
	}
	sums := waiting.NewOccupancySums(all)
	return slices.DeleteFunc(slices.Clone(busy), func(i int32) bool {
		s := &v.H.Spans[i]
		return sums.In(segment.Of(s.Call, s.Return)).Count > 1 // more than the try itself
	})
}
