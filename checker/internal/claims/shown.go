package claims

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// shownOps are the acquires, releases and renewals of an owner that an inspection was about.
type shownOps struct {
	spans []int32
	sums  []shownSum // of the first n of them
}

// shownSum sums up operations of one owner at one key.
type shownSum struct {
	Levels int32         // grants, less releases; of a semaphore in permits
	Unsure bool          // the effect of one on levels is unknown
	Latest time.Duration // when the last acquire or release returned

	Granted time.Duration // when the last grant or renewal returned
	Endless bool          // one of these had no lease, or is of unknown outcome
	longest time.Duration // the longest lease that they requested
	End     time.Duration // when the last of their leases ended, each as long as the longest before
	Soonest time.Duration // when the first lease can have ended; never: none was requested
}

// findShownOps finds the operations of the owners that inspections were about.
func (c *Check) findShownOps() map[ledger.OwnerKey]*shownOps {
	lists, ops := make(map[ledger.OwnerKey][]int32), make(map[ledger.OwnerKey]*shownOps)
	for _, s := range refs.At(c.H.Spans, c.Rare) {
		if s.Op == history.OpInspect || s.Op == history.OpInspectOwner {
			lists[ledger.Of(s)] = nil
		}
	}
	c.ListSpans(lists, func(s *history.Span) bool { return excuse.IsLockOp(s) || s.Op == history.OpRenew })
	for at, spans := range lists {
		sum := shownSum{Latest: -1, Granted: -1, Soonest: segment.Never}
		sums := append(make([]shownSum, 0, len(spans)+1), sum)
		for _, s := range refs.At(c.H.Spans, spans) {
			sum.count(s, c.H.Limit(at.Key) != 0)
			sum.lease(s)
			sums = append(sums, sum)
		}
		ops[at] = &shownOps{spans, sums}
	}
	return ops
}

// count counts an operation in levels.
func (u *shownSum) count(s *history.Span, semaphore bool) {
	if s.Op == history.OpRenew {
		return
	}
	u.Latest = max(u.Latest, s.Return)
	some := int32(1)
	if semaphore {
		some = s.Permits
	}
	switch release := s.Op == history.OpRelease; {
	case s.Outcome == history.Info || s.Undone || s.Outcome == history.Fail && release:
		u.Unsure = true
	case s.Outcome == history.OK && release:
		u.Levels -= some
	case s.Outcome == history.OK:
		u.Levels += some
	}
}

// lease adds the lease that a grant or a renewal requested.
func (u *shownSum) lease(s *history.Span) {
	if s.Op != history.OpRelease && s.Lease != 0 {
		u.Soonest = min(u.Soonest, segment.Later(s.Call, s.Lease))
	}
	if s.Op == history.OpRelease || s.Outcome == history.Fail {
		return
	}
	u.Granted = max(u.Granted, s.Return)
	u.Endless = u.Endless || s.Outcome == history.Info || s.Op != history.OpRenew && s.Lease == 0
	u.longest = max(u.longest, s.Lease)
	u.End = max(u.End, segment.Later(s.Return, u.longest))
}

// Until sums up the operations that were invoked by t.
func (o *shownOps) Until(h *history.History, t time.Duration) *shownSum {
	return &o.sums[sort.Search(len(o.spans), func(n int) bool { return h.Spans[o.spans[n]].Call > t })]
}

// Before sums up the operations before a span.
func (o *shownOps) Before(span int32) *shownSum {
	return &o.sums[sort.Search(len(o.spans), func(n int) bool { return o.spans[n] >= span })]
}
