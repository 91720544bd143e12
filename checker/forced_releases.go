package checker

import (
	"slices"
	"sort"

	"github.com/lockchaos/lockchaos/history"
)

// judgeForcedReleases judges the replies to forced releases: that the lock was taken from its holders, or that nobody
// held it. Only releases before the first fault are judged. On a quorum, a minority may keep a hold that has no owner.
func (c *honestyCheck) judgeForcedReleases() {
	if c.o.MayBeDown > 0 {
		return
	}
	around, undone := make(map[int32]extentSums), c.undoneAcquires()
	for i, s := range refsAt(c.h.Spans, c.rare) {
		if s.Op != history.OpForceRelease || s.Some || c.h.Limit(s.Key) != 0 || s.Outcome == history.Info ||
			c.o.applies(forceFault) && c.all.any(segment{0, s.Return}, func(*faultTime) bool { return true }) {
			continue
		}
		if s.Absent {
			if n, held := c.certainHolder(s); held {
				c.found.add(finding{rule: forceMissed, x: n, y: i, start: s.Call, end: s.Return})
			}
			continue
		}
		holds := c.byKey[s.Key]
		r, known := around[s.Key]
		if !known {
			r = c.extentSumsOf(holds)
			around[s.Key] = r
		}
		n := sort.Search(len(holds), func(n int) bool { return c.holds[holds[n]].from >= s.Call })
		free := later(r.lastEnd[n], c.o.ClockError) < s.Call && r.nextCall[n] > later(s.Return, c.o.ClockError)
		if s.Outcome == history.OK && free && !c.mayBeBetween(s, undone) {
			c.found.add(finding{rule: forcedNothing, x: none, y: i, start: s.Call, end: s.Return})
		}
	}
}

// mayBeBetween reports whether an acquire that no hold is known of may have held the lock during s.
func (c *honestyCheck) mayBeBetween(s *history.Span, undone []int32) bool {
	return c.unknown()[s.Key] <= s.Return || slices.ContainsFunc(undone, func(i int32) bool {
		x := &c.h.Spans[i]
		return x.Key == s.Key && x.Call <= s.Return && x.Return >= s.Call
	})
}

// undoneAcquires are the acquires that were granted and undone.
func (v *view) undoneAcquires() (all []int32) {
	for i, s := range refsAt(v.h.Spans, v.rare) {
		if s.Undone {
			all = append(all, i)
		}
	}
	return all
}
