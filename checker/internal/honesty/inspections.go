package honesty

import (
	"fmt"
	"slices"
	"sort"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/latch"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// This file compares inspections of a lock with the knowledge of its owners: the holder, and the grant.

// judgeShown judges the inspections of mutexes, and of readers-writer locks that are held to write. An earlier fault
// that may have changed the servers' data excuses the lock: a client may still be connected to a former master. Where
// masters may be down, any earlier fault does, since the masters that reply may not be a majority of the granting ones;
// but not if the lock shows another owner than the owner with a majority.
func judgeShown(c *claims.Check) {
	latches := latch.Latches(c.View)
	for i, s := range refs.At(c.H.Spans, c.Rare) {
		ofOwner := s.Op == history.OpInspectOwner
		if !ofOwner && s.Op != history.OpInspect || s.Outcome != history.OK && !s.Absent ||
			!ofOwner && c.H.Limit(s.Key) != 0 {
			continue
		}
		before := segment.Of(0, s.Return)
		if latches[s.Key] != nil || c.Touched(c.All, before) {
			continue
		}
		few := c.O.MayBeDown > 0 && c.O.Applies(claims.HonestMinority) &&
			c.All.Any(before, func(*excuse.FaultTime) bool { return true })
		switch {
		case !ofOwner:
			judgeShownHolder(c, i, few)
		case !few:
			judgeOwner(c, i)
		}
	}
}

// judgeShownHolder judges an inspection of who holds a lock. few: masters that have the lock may not have replied.
func judgeShownHolder(c *claims.Check, i int32, few bool) {
	s := &c.H.Spans[i]
	n, held := certainHolder(c, s)
	switch {
	case held && !s.Absent && c.Holds[n].Owner != s.Owner:
		showed(c, claims.ShownOther, n, i, c.H.Owners[c.Holds[n].Owner])
	case few:
	case held && s.Absent:
		showed(c, claims.ShownFree, n, i, "it free")
	case held:
		if wrong := grantErrors(c, &c.Holds[n], s); wrong != "" {
			showed(c, claims.ShownWrong, n, i, wrong)
		}
	case !s.Absent && certainlyGone(c, s):
		showed(c, claims.ShownGone, refs.None, i, "")
	}
}

func showed(c *claims.Check, rule int, hold, span int32, shown string) {
	s := &c.H.Spans[span]
	c.Found.Add(finding.Finding{Rule: rule, X: hold, Y: span, Start: s.Call, End: s.Return, Note: shown})
}

// certainHolder is the hold that excludes all others and was promised in all of an operation, if there is one.
func certainHolder(c *claims.Check, s *history.Span) (int32, bool) {
	holds := c.ByKey[s.Key]
	n := sort.Search(len(holds), func(n int) bool { return c.Holds[holds[n]].From > s.Call })
	for _, i := range slices.Backward(holds[max(0, n-ledger.MaxLookBack):n]) {
		h := &c.Holds[i]
		if !h.Reader && !h.Remains && h.Until >= s.Return && h.PromisedAt(s.Call) && h.PromisedAt(s.Return) {
			return i, true
		}
	}
	return refs.None, false
}

// grantErrors describes the errors in the grant that an inspection during a hold showed; "" if there are none.
func grantErrors(c *claims.Check, h *ledger.Hold, s *history.Span) string {
	if s.Token != 0 && h.Token != 0 && s.Token != h.Token {
		return fmt.Sprintf("token %d in place of %d", s.Token, h.Token)
	}
	if levels, known := levelsDuring(c, h, s); known && s.Count != 0 && s.Count != levels {
		return fmt.Sprintf("a hold count of %d in place of %d", s.Count, levels)
	}
	var levels claims.LevelPromises
	for _, p := range c.Promises().Of(h) {
		if p.Event < s.Invoked {
			levels.Apply(p)
		}
	}
	if until := levels.Longest().Until; s.Valid != 0 && s.Valid+extendError < until {
		return fmt.Sprintf("that the lease ends at %s, before the promise at %s", format.Instant(s.Valid),
			format.Instant(until))
	}
	return ""
}

// levelsDuring is how often the owner of a hold had the lock in all of an operation, and whether that is known.
func levelsDuring(c *claims.Check, h *ledger.Hold, s *history.Span) (levels int32, known bool) {
	if h.Extra().FailedReleases > 0 || h.Extra().LostLevels > 0 || h.Ambiguous {
		return 0, false
	}
	levels, known = levelsSince(c, h.At(), h.Span, s)
	return levels, known && levels > 0
}

// certainlyGone reports whether the owner that an inspection showed cannot have held the lock: it has released it, or
// has never requested it.
func certainlyGone(c *claims.Check, s *history.Span) bool {
	if c.IssueOrder[s.Owner] != ledger.OrdSequential || c.OwnerOrder[s.Owner] != ledger.OrdSequential {
		return false
	}
	levels, known := levelsSince(c, ledger.Of(s), 0, s)
	return known && levels == 0
}

// levelsSince counts the grants, less the releases, of an owner before an inspection, of a semaphore in permits. It is
// unknown whether they are as many at the server if the owner had a level before the span since, if an operation has
// overlapped the inspection, and if an outcome is unknown, as after a refused release.
func levelsSince(c *claims.Check, of ledger.OwnerKey, since int32, s *history.Span) (levels int32, known bool) {
	ops := c.ShownOps()[of]
	sum, before := ops.Until(c.H, s.Return), ops.Before(since)
	return sum.Levels, !sum.Unsure && sum.Latest < s.Call && before.Levels == 0
}
