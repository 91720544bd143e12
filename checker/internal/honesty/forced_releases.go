package honesty

import (
	"slices"
	"sort"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// judgeForcedReleases judges the replies to forced releases: that the lock was taken from its holders, or that nobody
// held it. Only releases before the first fault are judged. On a quorum, a minority may keep a hold that has no owner.
func judgeForcedReleases(c *claims.Check) {
	if c.O.MayBeDown > 0 {
		return
	}
	around, undone := make(map[int32]bounds.ExtentSums), undoneAcquires(c.View)
	for i, s := range refs.At(c.H.Spans, c.Rare) {
		if s.Op != history.OpForceRelease || s.Some || c.H.Limit(s.Key) != 0 || s.Outcome == history.Info ||
			c.O.Applies(claims.ForceFault) && c.All.Any(segment.Of(0, s.Return), func(*excuse.FaultTime) bool { return true }) {
			continue
		}
		if s.Absent {
			if n, held := certainHolder(c, s); held {
				c.Found.Add(finding.Finding{Rule: claims.ForceMissed, X: n, Y: i, Start: s.Call, End: s.Return})
			}
			continue
		}
		holds := c.ByKey[s.Key]
		r, known := around[s.Key]
		if !known {
			r = c.ExtentSumsOf(holds)
			around[s.Key] = r
		}
		n := sort.Search(len(holds), func(n int) bool { return c.Holds[holds[n]].From >= s.Call })
		free := segment.Later(r.LastEnd[n], c.O.ClockError) < s.Call &&
			r.NextCall[n] > segment.Later(s.Return, c.O.ClockError)
		if s.Outcome == history.OK && free && !mayBeBetween(c, s, undone) {
			c.Found.Add(finding.Finding{Rule: claims.ForcedNothing, X: refs.None, Y: i, Start: s.Call, End: s.Return})
		}
	}
}

// mayBeBetween reports whether an acquire that no hold is known of may have held the lock during s.
func mayBeBetween(c *claims.Check, s *history.Span, undone []int32) bool {
	return c.Unknown()[s.Key] <= s.Return || slices.ContainsFunc(undone, func(i int32) bool {
		x := &c.H.Spans[i]
		return x.Key == s.Key && x.Call <= s.Return && x.Return >= s.Call
	})
}

// undoneAcquires are the acquires that were granted and undone.
func undoneAcquires(v *bounds.View) (all []int32) {
	for i, s := range refs.At(v.H.Spans, v.Rare) {
		if s.Undone {
			all = append(all, i)
		}
	}
	return all
}
