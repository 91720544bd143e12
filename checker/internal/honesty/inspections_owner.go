package honesty

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// This file compares inspections of one owner with that owner's knowledge. It also judges locks that several may hold:
// readers, and holders of permits.

// judgeOwner judges an inspection of one owner.
func judgeOwner(c *claims.Check, i int32) {
	s := &c.H.Spans[i]
	n, held := c.LastHold(s.Owner, s.Key, s.Call)
	held = held && certainIn(&c.Holds[n], s)
	switch {
	case held && s.Absent:
		showed(c, claims.ShownFree, n, i, "no hold of "+c.H.Owners[s.Owner])
	case s.Absent:
	case certainlyGone(c, s):
		showed(c, claims.ShownGone, refs.None, i, "")
	case certainlyExpired(c, s):
		showed(c, claims.ShownExpired, refs.None, i, "")
	case held:
		levels, known := levelsSince(c, ledger.Of(s), 0, s)
		if known && leasesLast(c, s) && levels > 0 && s.Count != levels {
			showed(c, claims.ShownWrong, n, i, fmt.Sprintf("a hold count of %d in place of %d", s.Count, levels))
		}
	}
}

// certainIn reports whether a hold was certain and promised in all of an operation.
func certainIn(h *ledger.Hold, s *history.Span) bool {
	return !h.Remains && h.From < s.Call && h.Until >= s.Return && h.PromisedAt(s.Call) && h.PromisedAt(s.Return)
}

// certainlyExpired reports whether each lease that the owner of an inspection can have had at the key ended more than
// the slack before.
func certainlyExpired(c *claims.Check, s *history.Span) bool {
	if c.IssueOrder[s.Owner] != ledger.OrdSequential {
		return false
	}
	sum := c.ShownOps()[ledger.Of(s)].Until(c.H, s.Return)
	return !sum.Endless && sum.Granted < s.Call && sum.End > 0 && segment.Later(sum.End, c.O.Slack()) < s.Call
}

// leasesLast reports whether no lease of the owner of an inspection can have ended before it, whatever was renewed.
func leasesLast(c *claims.Check, s *history.Span) bool {
	return c.ShownOps()[ledger.Of(s)].Until(c.H, s.Return).Soonest > s.Return
}
