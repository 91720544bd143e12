package checker

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// shownOps are the acquires, releases and renewals of an owner that an inspection was about.
type shownOps struct {
	spans []int32
	sums  []shownSum // of the first n of them
}

// shownSum sums up operations of one owner at one key.
type shownSum struct {
	levels int32         // grants, less releases; of a semaphore in permits
	unsure bool          // the effect of one on levels is unknown
	latest time.Duration // when the last acquire or release returned

	granted time.Duration // when the last grant or renewal returned
	endless bool          // one of these had no lease, or is of unknown outcome
	longest time.Duration // the longest lease that they requested
	end     time.Duration // when the last of their leases ended, each as long as the longest before
	soonest time.Duration // when the first lease can have ended; never: none was requested
}

// findShownOps finds the operations of the owners that inspections were about.
func (c *honestyCheck) findShownOps() map[ownerKey]*shownOps {
	lists, ops := make(map[ownerKey][]int32), make(map[ownerKey]*shownOps)
	for _, s := range refsAt(c.h.Spans, c.rare) {
		if s.Op == history.OpInspect || s.Op == history.OpInspectOwner {
			lists[ownerKey{s.Owner, s.Key}] = nil
		}
	}
	c.listSpans(lists, func(s *history.Span) bool { return isLockOp(s) || s.Op == history.OpRenew })
	for at, spans := range lists {
		sum := shownSum{latest: -1, granted: -1, soonest: never}
		sums := append(make([]shownSum, 0, len(spans)+1), sum)
		for _, s := range refsAt(c.h.Spans, spans) {
			sum.count(s, c.h.Limit(at.key) != 0)
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
	u.latest = max(u.latest, s.Return)
	some := int32(1)
	if semaphore {
		some = s.Permits
	}
	switch release := s.Op == history.OpRelease; {
	case s.Outcome == history.Info || s.Undone || s.Outcome == history.Fail && release:
		u.unsure = true
	case s.Outcome == history.OK && release:
		u.levels -= some
	case s.Outcome == history.OK:
		u.levels += some
	}
}

// lease adds the lease that a grant or a renewal requested.
func (u *shownSum) lease(s *history.Span) {
	if s.Op != history.OpRelease && s.Lease != 0 {
		u.soonest = min(u.soonest, later(s.Call, s.Lease))
	}
	if s.Op == history.OpRelease || s.Outcome == history.Fail {
		return
	}
	u.granted = max(u.granted, s.Return)
	u.endless = u.endless || s.Outcome == history.Info || s.Op != history.OpRenew && s.Lease == 0
	u.longest = max(u.longest, s.Lease)
	u.end = max(u.end, later(s.Return, u.longest))
}

// until sums up the operations that were invoked by t.
func (o *shownOps) until(h *history.History, t time.Duration) *shownSum {
	return &o.sums[sort.Search(len(o.spans), func(n int) bool { return h.Spans[o.spans[n]].Call > t })]
}

// before sums up the operations before a span.
func (o *shownOps) before(span int32) *shownSum {
	return &o.sums[sort.Search(len(o.spans), func(n int) bool { return o.spans[n] >= span })]
}
