package ledger

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/internal/kept"
)

// endStalled ends each hold with its promise, if that ended in a stall: its owner could not act on it, or its actions
// were recorded late. Outlived leases are judged where the scenario pauses the holder.
func (v *View) endStalled() {
	for _, h := range refs.All(v.Holds) {
		end := min(h.LongestPromise(), v.unrenewedSince(h, v.ClientStalls()))
		if end < h.Until && v.Stalled(h, segment.Of(end, end)) {
			v.endHold(h, end)
		}
	}
}

// UnrenewedFrom is the first time at which a hold was without renewals, see [View.unrenewedSince].
func (v *View) UnrenewedFrom(h *Hold) time.Duration {
	return v.unrenewedSince(h, v.RenewalStops())
}

// unrenewedSince is the time of the first of the stops of its client during a hold whose lease the lock renews by
// itself, without a stated validity: the lease may have ended at any time after that; never: there was no stop. A stop
// after which samples show a renewal does not count: the client renews again.
func (v *View) unrenewedSince(h *Hold, stops map[int][]segment.Segment) time.Duration {
	client := v.Client(h.Span)
	renews := v.RenewalStops() != nil && h.LongestPromise() == segment.Never && v.H.Spans[h.Span].Lease == 0
	for _, s := range stops[client] {
		again := func(x *kept.Stay) bool { return x.Client == client && x.RenewedIn(s.Until, h.Until) }
		if renews && s.Until > h.From && s.From < h.Until &&
			(v.Quorum || v.Kept() == nil || !slices.ContainsFunc(v.Kept().Showing(h.Span), again)) {
			return max(h.From, s.From)
		}
	}
	return segment.Never
}

// Stalled reports whether the client of a hold, or the harness, did not run at some time in s.
func (v *View) Stalled(h *Hold, s segment.Segment) bool {
	return excuse.OutageWindows{Windows: v.ClientStalls()[v.Client(h.Span)]}.Touches(s)
}

// endReported ends each hold with its promise, if its loss was reported at most delay after that: a busy machine runs
// the timer of a client so late, and the heartbeat of the harness records longer stalls only.
func (v *View) endReported(delay time.Duration) {
	for _, h := range refs.All(v.Holds) {
		end := h.LongestPromise()
		if end < h.Until && h.Until <= segment.Later(end, delay) && v.LossReported(h) {
			v.endHold(h, end)
		}
	}
}

// endHold ends a hold at end, which is before its until.
func (v *View) endHold(h *Hold, end time.Duration) {
	if h.Until = max(h.From, end); h.Ending == EndReleased {
		return
	}
	if h.Core = min(h.Core, h.Until); h.Ending == endOpen {
		h.Ending = EndLost
	}
	v.Promised[h.Span] = h.Core
}
