package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file is about the times in which the harness itself did not run: it was stopped, or the machine slept. Clients
// then get no requests, their replies and notices are recorded late, and the network, which passes through the
// harness, carries nothing. For the checkers everyone was stopped: the servers were unavailable, and so was every
// client.

// harnessStalls are these times, in their order.
func (v *view) harnessStalls() (stalls []segment) {
	for _, f := range refs(v.h.Faults) {
		if f.Phase == history.Noted && f.Name == history.HarnessStalled {
			stalls = append(stalls, segment{f.Time - f.Lasted, f.Time})
		}
	}
	return stalls
}

// endStalled ends each hold with its promise, if that ended while the harness was stopped: what the owner did or
// reported after that was recorded only when the harness ran again.
func (v *view) endStalled() {
	stalls := outageWindows{v.harnessStalls()}
	for _, h := range refs(v.holds) {
		if end := h.lastPromise(); end < h.until && stalls.touches(segment{end, end}) {
			v.endHold(h, end)
		}
	}
}

// endReported ends each hold with its promise, if its loss was reported at most delay after that: a busy machine runs
// the timer of a client so late, and the heartbeat of the harness records longer stalls only. The promise is the one
// that lasts longest: an inner level with a shorter lease does not shorten that of the outer one.
func (v *view) endReported(delay time.Duration) {
	if delay == 0 {
		return
	}
	for _, h := range refs(v.holds) {
		end := max(h.lastPromise(), h.extra().furthest)
		if end < h.until && h.until <= later(end, delay) && v.lossReported(h) {
			v.endHold(h, end)
		}
	}
}

// endHold ends a hold at end, which is before its until.
func (v *view) endHold(h *hold, end time.Duration) {
	if h.until = max(h.from, end); h.ending == endReleased {
		return
	}
	h.core = min(h.core, h.until)
	v.promised[h.span] = h.core
}

// addStalls adds the stalls of the harness to the pauses of every client.
func (v *view) addStalls(pauses map[int][]segment) map[int][]segment {
	stalls := v.harnessStalls()
	if len(stalls) == 0 {
		return pauses
	}
	added := make(map[int][]segment)
	for i := range v.h.Spans {
		client := v.client(int32(i))
		if _, is := added[client]; !is {
			added[client] = merged(pauses[client], stalls)
		}
	}
	return added
}

// writtenStalled reports whether a touch came from a hold whose promise ended while the harness was stopped.
func (v *view) writtenStalled(touch int32) bool {
	if touch < 0 {
		return false
	}
	h, stalls := v.writerOf(touch), outageWindows{v.harnessStalls()}
	return h != nil && v.h.Touches[touch].Time > h.until && stalls.touches(segment{h.lastPromise(), h.lastPromise()})
}

// undoneGrants adds the times in which an acquire may have held a key before its reply: it was granted and undone.
func (e *extents) undoneGrants() {
	for i, s := range refsAt(e.h.Spans, e.rare) {
		if s.Undone {
			x := freeInterval{segment: segment{s.Call, s.Return}, key: s.Key, last: i, cause: afterUnknownAcquire}
			e.possible[s.Key] = append(e.possible[s.Key], x)
		}
	}
}

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
		if f.may(history.AffectsTraffic) {
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
