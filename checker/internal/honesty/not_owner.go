package honesty

import (
	"sort"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeOwnerNamed finds the releases that were refused with code lost although another owner certainly had the lock, at
// a lock that states that it says so. Of a quorum, the masters that refuse a release and the masters that keep the
// other owner's promise are majorities, with a master in common.
//
// A repeated release gets the first reply again, perhaps from before the other grant: an owner with an earlier release
// that failed without a reason, or whose outcome is unknown, is not judged.
func judgeOwnerNamed(c *claims.Check) {
	if !c.O.States(promise.DistinguishesNotOwner) {
		return
	}
	repeats, forced := make(map[ledger.OwnerKey]bool), make(map[int32]bool)
	for _, s := range refs.At(c.H.Spans, c.Rare) {
		if s.Op == history.OpForceRelease {
			forced[s.Key] = true
		}
	}
	for i, s := range refs.All(c.H.Spans) {
		at := ledger.Of(s)
		switch {
		case s.Op != history.OpRelease:
		case s.Lost && !s.Part && !repeats[at] && !forced[s.Key] && c.H.Limit(s.Key) == 0:
			judgeOwnerUnnamed(c, i, s)
		case s.Outcome != history.OK && !s.Denied:
			repeats[at] = true
		}
	}
}

// judgeOwnerUnnamed judges one such release.
func judgeOwnerUnnamed(c *claims.Check, i int32, s *history.Span) {
	if _, held := c.LastHold(s.Owner, s.Key, s.Call); !held {
		return
	}
	holds := c.ByKey[s.Key]
	began := sort.Search(len(holds), func(n int) bool { return c.Holds[holds[n]].From >= s.Call })
	for n := began - 1; n >= max(0, began-ledger.MaxLookBack); n-- {
		h := &c.Holds[holds[n]]
		if h.Owner == s.Owner || !certainlyPromised(c, h, segment.Of(s.Call, s.Return)) {
			continue
		}
		since := segment.Of(h.Asked, s.Return)
		if c.O.Applies(claims.HonestData) && c.All.MayAffect(since, excuse.AnyClient, history.AffectsData,
			history.AffectsCommands,
			history.AffectsRights, history.AffectsClockBack, history.AffectsSlots, history.AffectsMemory) {
			continue // the servers' data, or how they reply, may have changed
		}
		c.Found.Add(finding.Finding{Rule: claims.OwnerUnnamed, X: holds[n], Y: i, Start: s.Call, End: s.Return})
		return
	}
}

// certainlyPromised reports whether one promise to write covers all of during, and none of the promises of h was given
// up by then.
func certainlyPromised(c *claims.Check, h *ledger.Hold, during segment.Segment) (sure bool) {
	if h.Reader || segment.Later(h.From, c.O.ClockError) >= during.From || h.Until-c.O.ClockError <= during.Until {
		return false
	}
	for _, p := range c.Promises().Of(h) {
		lasts := p.Until-c.O.ClockError > during.Until
		switch {
		case p.At > during.Until:
		case p.Kind == claims.PromiseOver || p.Reader:
			return false
		case segment.Later(p.At, c.O.ClockError) < during.From:
			sure = lasts
		default:
			sure = sure && lasts
		}
	}
	return sure
}
