// Package honesty judges whether replies and notices are true.
package honesty

import (
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Check looks for replies and reports that were not true: a release or a renewal that succeeded although the
// owner was not the holder (redis-py#490, ShedLock#2583), and a loss that was reported late, never, or without cause.
//
// Releases and renewals. An owner that was granted the lock later, still relies on it and is still promised it,
// proves that the earlier owner no longer holds it: an operation of the earlier owner that lies entirely in such an
// interval was not made by a holder. An owner that never acquired the lock, or has released it, does not hold it;
// owners with operations of unknown outcome are not judged.
//
// Losses. A lock can report a loss when its promise has ended by its own clock. The report is late if the client relied
// on the lock for longer than the slack after that. Only time in which the lock could have reported counts: not the
// time in which the client was paused, and not a lock that takes a lease, replies with its validity and never reports
// losses, because the validity says everything. A loss has no cause if the promise was in force, no other owner was
// granted the lock by then, and the servers were available.
func Check(v *bounds.View, o given.Options) property.Result {
	c := claims.New(v, o)
	judge(c)
	r := c.Found.Result(property.Honesty, func(f finding.Finding) property.Violation { return violation(c, f) })
	r.Counts = map[string]int64{"releases_and_renewals": int64(c.Replies), "losses_reported": int64(c.Losses),
		"promises_outlived": int64(c.Outlived)}
	switch {
	case r.Outcome == property.Violated:
	case c.Unjudged:
		r.Outcome, r.Summary = property.Undecided, ledger.UnknownHolds(c.UnknownCounts)
	case c.Replies == 0 && c.Losses == 0 && c.Outlived == 0:
		r.Outcome, r.Summary = property.NotApplicable, finding.NoReplies
	default:
		r.Summary = format.Each(c.Replies, "release or renewal reply", "true") + "; " +
			format.Each(c.Losses, "loss report", "true")
	}
	return r
}

// releasesOfNothing judges releases by owners without a hold.
func releasesOfNothing(c *claims.Check) {
	for i, s := range refs.At(c.H.Spans, c.Orphans) {
		rule := claims.ReleasedNothing
		if _, before := c.LastHold(s.Owner, s.Key, s.Call); before {
			rule = claims.ReleasedTwice
		}
		c.Found.Add(finding.Finding{Rule: rule, X: -1, Y: i, Start: s.Call, End: s.Return})
	}
}

// operationsOfOthers judges releases and renewals that lie inside the hold of another owner.
func operationsOfOthers(c *claims.Check) {
	before := make([]int, len(c.ByKey)) // by key: how many holds began before the operation
	for i, s := range refs.All(c.H.Spans) {
		if (s.Op != history.OpRelease && s.Op != history.OpRenew) || s.Outcome != history.OK {
			continue
		}
		c.Replies++
		holds, n := c.ByKey[s.Key], before[s.Key]
		for n < len(holds) && c.Holds[holds[n]].From < s.Call {
			n++
		}
		before[s.Key] = n
		c.Unjudged = c.Unjudged || c.OwnerOrder[s.Owner] == ledger.OrdUnknown
		if c.OwnerOrder[s.Owner] == ledger.OrdUnknown || c.MayBeOfNothing(s) {
			continue
		}
		if c.H.Limit(s.Key) > 1 || c.H.Limit(s.Key) == history.UnknownLimit {
			renewalOfNothing(c, i, s)
			continue
		}
		within(c, i, s, n)
	}
}

// renewalOfNothing judges a renewal of permits: its owner has to have acquired some before.
func renewalOfNothing(c *claims.Check, i int32, s *history.Span) {
	if s.Op != history.OpRenew || c.OwnerOrder[s.Owner] != ledger.OrdSequential {
		return
	}
	if _, held := c.LastHold(s.Owner, s.Key, s.Return); held {
		return
	}
	for _, a := range refs.All(c.H.Spans) {
		if a.Owner == s.Owner && a.Key == s.Key && excuse.IsAcquire(a.Op) &&
			a.Outcome != history.Fail {
			return
		}
	}
	c.Found.Add(finding.Finding{Rule: claims.RenewedNothing, X: -1, Y: i, Start: s.Call, End: s.Return})
}

// within looks for another owner's promise around s, among the n holds before it. An owner that was granted the lock
// earlier is a matter of exclusion: only a later owner can have taken it over. Whether the owner shares the lock with
// readers follows from the mode of its hold, because a release or renewal does not say its mode.
func within(c *claims.Check, i int32, s *history.Span, n int) {
	holds, mine, over := c.ByKey[s.Key], int32(-1), int32(-1) // over: a hold of its own that had ended before
	other, writer := int32(-1), int32(-1)                     // an owner that came later; and one of these that writes
	for m := n - 1; m >= 0 && n-m <= ledger.MaxLookBack && mine < 0; m-- {
		h := &c.Holds[holds[m]]
		switch {
		case h.Owner == s.Owner && h.Until >= s.Call:
			mine = holds[m]
		case h.Owner == s.Owner:
			over = max(over, holds[m])
		case over >= 0: // it came before
		case h.From+c.O.ClockError >= s.Call || h.Until-c.O.ClockError <= s.Return:
		case c.O.Applies(claims.HonestPromise) && !(h.PromisedAt(s.Call) && h.PromisedAt(s.Return)):
		default:
			if other = holds[m]; !h.Reader {
				writer = holds[m]
			}
		}
	}
	if mine >= 0 && other < 0 {
		return
	}
	if mine < 0 {
		mine = over
	}
	if mine < 0 {
		if i, held := c.LastHold(s.Owner, s.Key, s.Return); held {
			mine = i
		}
	}
	if mine >= 0 && c.O.Applies(claims.HonestReaders) && (c.Holds[mine].Reader || !s.Write) {
		other = writer
	}
	rule := claims.ReleasedOther
	if s.Op == history.OpRenew {
		rule = claims.RenewedOther
	}
	switch {
	case mine >= 0 && other >= 0:
		c.Found.Add(finding.Finding{Rule: rule, X: other, Y: i, Start: s.Call, End: s.Return})
	case mine < 0 && s.Op == history.OpRenew && c.OwnerOrder[s.Owner] == ledger.OrdSequential:
		c.Found.Add(finding.Finding{Rule: claims.RenewedNothing, X: -1, Y: i, Start: s.Call, End: s.Return})
	}
}
