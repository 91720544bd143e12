package checker

import (
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
