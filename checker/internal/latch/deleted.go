package latch

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// This file has the rules of latch about generations that are over: deleted, or followed by others.

// usedDeleted reports whether a count-down or an inspection succeeded although each generation that it can have been
// about had been deleted before.
func (c *check) usedDeleted(meant []*Arming, i int32) bool {
	s := &c.H.Spans[i]
	if s.Outcome != history.OK || c.found.Off.Has(latchUsedDeleted) ||
		slices.ContainsFunc(meant, func(a *Arming) bool { return a.deleted >= s.Call }) {
		return false
	}
	c.add(latchUsedDeleted, meant[len(meant)-1], i, s.Call)
	return true
}

// shownOld reports whether an inspection showed a generation that had certainly been followed by another one.
func (c *check) shownOld(l *latchKey, meant []*Arming, i int32) bool {
	s := &c.H.Spans[i]
	current := l.current(segment.Of(s.Call, s.Return))
	isCurrent := func(a *Arming) bool { return slices.Contains(current, a) }
	if s.Op != history.OpInspect || slices.ContainsFunc(meant, isCurrent) {
		return false
	}
	c.add(latchShownOld, meant[len(meant)-1], i, s.Call)
	return true
}

// waitedDeleted judges an await that timed out or was refused: it lasts no longer than the slack after the generations
// that it can have waited for were deleted.
func (c *check) waitedDeleted(l *latchKey, i int32) {
	s := &c.H.Spans[i]
	if s.Op != history.OpAwait || s.Outcome == history.OK || s.Token == 0 && l.unknown <= s.Return {
		return
	}
	meant := c.foundBy(generationsOf(c.View, l, i), i)
	from := s.Call
	for _, a := range meant {
		from = max(from, a.deleted)
	}
	if len(meant) > 0 {
		c.addWait(latchKeptDeleted, meant[len(meant)-1], i, from)
	}
}
