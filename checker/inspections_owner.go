package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
)

// This file compares inspections of one owner with that owner's knowledge. It also judges locks that several may hold:
// readers, and holders of permits.

// judgeOwner judges an inspection of one owner.
func (c *honestyCheck) judgeOwner(i int32) {
	s := &c.h.Spans[i]
	n, held := c.lastHold(s.Owner, s.Key, s.Call)
	held = held && c.certainIn(&c.holds[n], s)
	switch {
	case held && s.Absent:
		c.showed(shownFree, n, i, "no hold of "+c.h.Owners[s.Owner])
	case s.Absent:
	case c.certainlyGone(s):
		c.showed(shownGone, none, i, "")
	case c.certainlyExpired(s):
		c.showed(shownExpired, none, i, "")
	case held:
		levels, known := c.levelsSince(ownerKey{s.Owner, s.Key}, 0, s)
		if known && c.leasesLast(s) && levels > 0 && s.Count != levels {
			c.showed(shownWrong, n, i, fmt.Sprintf("a hold count of %d in place of %d", s.Count, levels))
		}
	}
}

// certainIn reports whether a hold was certain and promised in all of an operation.
func (c *honestyCheck) certainIn(h *hold, s *history.Span) bool {
	return !h.remains && h.from < s.Call && h.until >= s.Return && h.promisedAt(s.Call) && h.promisedAt(s.Return)
}

// certainlyExpired reports whether each lease that the owner of an inspection can have had at the key ended more than
// the slack before.
func (c *honestyCheck) certainlyExpired(s *history.Span) bool {
	if c.issueOrder[s.Owner] != ordSequential {
		return false
	}
	sum := c.shownOps()[ownerKey{s.Owner, s.Key}].until(c.h, s.Return)
	return !sum.endless && sum.granted < s.Call && sum.end > 0 && later(sum.end, c.o.slack()) < s.Call
}

// leasesLast reports whether no lease of the owner of an inspection can have ended before it, whatever was renewed.
func (c *honestyCheck) leasesLast(s *history.Span) bool {
	return c.shownOps()[ownerKey{s.Owner, s.Key}].until(c.h, s.Return).soonest > s.Return
}
