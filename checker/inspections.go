package checker

import (
	"fmt"
	"slices"
	"sort"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// This file compares inspections of a lock with the knowledge of its owners: the holder, and the grant.

// judgeShown judges the inspections of mutexes, and of readers-writer locks that are held to write. An earlier fault
// that may have changed the servers' data excuses the lock: a client may still be connected to a former master. Where
// masters may be down, any earlier fault does, since the masters that reply may not be a majority of the granting ones;
// but not if the lock shows another owner than the owner with a majority.
func (c *honestyCheck) judgeShown() {
	latches := c.latches()
	for i, s := range refsAt(c.h.Spans, c.rare) {
		ofOwner := s.Op == history.OpInspectOwner
		if !ofOwner && s.Op != history.OpInspect || s.Outcome != history.OK && !s.Absent ||
			!ofOwner && c.h.Limit(s.Key) != 0 {
			continue
		}
		before := segment{0, s.Return}
		if latches[s.Key] != nil || c.touched(c.all, before) {
			continue
		}
		few := c.o.MayBeDown > 0 && c.o.applies(honestMinority) &&
			c.all.any(before, func(*faultTime) bool { return true })
		switch {
		case !ofOwner:
			c.judgeShownHolder(i, few)
		case !few:
			c.judgeOwner(i)
		}
	}
}

// judgeShownHolder judges an inspection of who holds a lock. few: masters that have the lock may not have replied.
func (c *honestyCheck) judgeShownHolder(i int32, few bool) {
	s := &c.h.Spans[i]
	n, held := c.certainHolder(s)
	switch {
	case held && !s.Absent && c.holds[n].owner != s.Owner:
		c.showed(shownOther, n, i, c.h.Owners[c.holds[n].owner])
	case few:
	case held && s.Absent:
		c.showed(shownFree, n, i, "it free")
	case held:
		if wrong := c.grantErrors(&c.holds[n], s); wrong != "" {
			c.showed(shownWrong, n, i, wrong)
		}
	case !s.Absent && c.certainlyGone(s):
		c.showed(shownGone, none, i, "")
	}
}

func (c *honestyCheck) showed(rule int, hold, span int32, shown string) {
	s := &c.h.Spans[span]
	c.found.add(finding{rule: rule, x: hold, y: span, start: s.Call, end: s.Return, note: shown})
}

// certainHolder is the hold that excludes all others and was promised in all of an operation, if there is one.
func (c *honestyCheck) certainHolder(s *history.Span) (int32, bool) {
	holds := c.byKey[s.Key]
	n := sort.Search(len(holds), func(n int) bool { return c.holds[holds[n]].from > s.Call })
	for _, i := range slices.Backward(holds[max(0, n-maxLookBack):n]) {
		h := &c.holds[i]
		if !h.reader && !h.remains && h.until >= s.Return && h.promisedAt(s.Call) && h.promisedAt(s.Return) {
			return i, true
		}
	}
	return none, false
}

// grantErrors describes the errors in the grant that an inspection during a hold showed; "" if there are none.
func (c *honestyCheck) grantErrors(h *hold, s *history.Span) string {
	if s.Token != 0 && h.token != 0 && s.Token != h.token {
		return fmt.Sprintf("token %d in place of %d", s.Token, h.token)
	}
	if levels, known := c.levelsDuring(h, s); known && s.Count != 0 && s.Count != levels {
		return fmt.Sprintf("a hold count of %d in place of %d", s.Count, levels)
	}
	var levels levelPromises
	for _, p := range c.promises().of(h) {
		if p.event < s.Invoked {
			levels.apply(p)
		}
	}
	if until := levels.longest().until; s.Valid != 0 && s.Valid+extendError < until {
		return fmt.Sprintf("that the lease ends at %s, before the promise at %s", format.Instant(s.Valid),
			format.Instant(until))
	}
	return ""
}

// levelsDuring is how often the owner of a hold had the lock in all of an operation, and whether that is known.
func (c *honestyCheck) levelsDuring(h *hold, s *history.Span) (levels int32, known bool) {
	if h.extra().failedReleases > 0 || h.extra().lostLevels > 0 || h.ambiguous {
		return 0, false
	}
	levels, known = c.levelsSince(ownerKey{h.owner, h.key}, h.span, s)
	return levels, known && levels > 0
}

// certainlyGone reports whether the owner that an inspection showed cannot have held the lock: it has released it, or
// has never requested it.
func (c *honestyCheck) certainlyGone(s *history.Span) bool {
	if c.issueOrder[s.Owner] != ordSequential || c.ownerOrder[s.Owner] != ordSequential {
		return false
	}
	levels, known := c.levelsSince(ownerKey{s.Owner, s.Key}, 0, s)
	return known && levels == 0
}

// levelsSince counts the grants, less the releases, of an owner before an inspection, of a semaphore in permits. It is
// unknown whether they are as many at the server if the owner had a level before the span since, if an operation has
// overlapped the inspection, and if an outcome is unknown, as after a refused release.
func (c *honestyCheck) levelsSince(of ownerKey, since int32, s *history.Span) (levels int32, known bool) {
	ops := c.shownOps()[of]
	sum, before := ops.until(c.h, s.Return), ops.before(since)
	return sum.levels, !sum.unsure && sum.latest < s.Call && before.levels == 0
}
