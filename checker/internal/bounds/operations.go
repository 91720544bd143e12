package bounds

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// Clipped is the end of a segment, or the end of the run if it never ends.
func (v *View) Clipped(s segment.Segment) time.Duration { return max(s.From, min(s.Until, v.H.End)) }

// LastUse is when the client of a span had sent the request before it: 0 if there was none.
func (v *View) LastUse(span int32) time.Duration { return v.UsedBefore(span, 1) }

// UsedBefore is when the client of a span had sent the n-th request before it: 0 if there were fewer.
func (v *View) UsedBefore(span int32, n int) time.Duration {
	client := v.Client(span)
	for i := span - 1; i >= 0; i-- {
		if v.Client(i) == client {
			if n--; n == 0 {
				return v.H.Spans[i].Call
			}
		}
	}
	return 0
}

// Sorted is a list of grants sorted by a time.
func (v *View) Sorted(grants []int32, key func(*ledger.Hold) time.Duration) []int32 {
	s := slices.Clone(grants)
	slices.SortStableFunc(s, func(i, j int32) int { return cmp.Compare(key(&v.Holds[i]), key(&v.Holds[j])) })
	return s
}

// HoldsThroughout reports whether an owner certainly held the lock during all of s, in the given mode and not in the
// other one.
func (v *View) HoldsThroughout(owner, key int32, s segment.Segment, reading bool) bool {
	holds := false
	for _, h := range v.ByOwner().At(owner, key, s.From) {
		switch {
		case h.Until < s.From:
			continue
		case h.Reader != reading:
			return false
		}
		holds = holds || h.Until >= s.Until && h.PromisedAt(s.From) && h.PromisedAt(s.Until)
	}
	return holds
}

// Crashes is, by client, when it last crashed.
func (v *View) Crashes() map[int]time.Duration {
	crashed := make(map[int]time.Duration)
	for _, n := range refs.All(v.H.Notices) {
		if n.F == history.Crash {
			crashed[n.Process.Client(v.H.Clients)] = n.Time
		}
	}
	return crashed
}

// LastActivity is when the last operation of a client was invoked, or returned.
func (v *View) LastActivity() (last time.Duration) {
	for _, s := range refs.All(v.H.Spans) {
		if last = max(last, s.Call); s.Return < segment.Never {
			last = max(last, s.Return)
		}
	}
	return last
}
