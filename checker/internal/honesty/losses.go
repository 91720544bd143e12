package honesty

import (
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeLosses judges the reported losses, and the losses that were not reported.
func judgeLosses(c *claims.Check) {
	reported, ofLeases := false, false // ofLeases: that a requested lease had ended
	for _, n := range refs.All(c.H.Notices) {
		if n.F != history.Lost {
			continue
		}
		reported = true
		c.Losses++
		if x, held := c.LastHold(n.Owner, n.Key, n.Time); held && !ofLeases {
			h := &c.Holds[x]
			ofLeases = c.H.Spans[h.Span].Lease > 0 && n.Time >= validUntil(c, h) && !reenteredUnleased(c, h)
		}
	}
	pauses := c.ClientPauses()
	excuses := c.ExcusesFor(c.O)
	for i, h := range refs.All(c.Holds) {
		if valid := validUntil(c, h); valid < h.Until {
			judgeLate(c, i, valid, ofLeases, pauses)
		}
		if reported && h.EndEvent >= 0 {
			var away excuse.OutageWindows
			if c.O.Applies(claims.HonestOutage) {
				away = excuses(excuse.Scope{Key: h.Key, ReleaseOrRenewal: true}).Away
			}
			judgeUnfounded(c, i, away)
		}
	}
}

// reenteredUnleased reports whether the owner of h acquired the lock again, at any time, without a lease.
func reenteredUnleased(c *claims.Check, h *ledger.Hold) bool {
	return slices.ContainsFunc(c.Regrants, func(i int32) bool {
		s := &c.H.Spans[i]
		return s.Owner == h.Owner && s.Key == h.Key && s.Lease == 0
	})
}

// validUntil is the end of the promise of a hold, or of a hold that ended sooner, of the last one: a shorter promise to
// an inner level leaves that to an outer one in force.
func validUntil(c *claims.Check, h *ledger.Hold) time.Duration {
	valid := h.LastPromise()
	if valid < h.Until {
		valid = max(valid, c.LongestLeft(h))
	}
	if s := &c.H.Spans[h.Span]; s.Valid == 0 && len(h.Extra().LaterPromises) == 0 {
		// The lock replied with no validity: its lease began at the request that was granted, which the lock sent at some
		// time of its wait.
		valid = max(valid, s.Return+s.Lease)
	}
	return valid
}

// judgeLate judges a hold on which its owner relied after its promise, until its client was seen last. ofLeases: the
// lock has reported a loss because a requested lease had ended.
func judgeLate(c *claims.Check, i int32, valid time.Duration, ofLeases bool, pauses map[int][]segment.Segment) {
	h := &c.Holds[i]
	s := &c.H.Spans[h.Span]
	if valid < c.H.End { // the promise to a hold that has not ended may end after the history
		c.Outlived++
	}
	if c.O.Applies(claims.HonestSilent) && !ofLeases && !c.O.States(promise.ReportsLoss) && (s.Lease > 0 || s.Valid == 0) {
		return
	}
	until := min(h.Until, c.Seen()[c.Client(h.Span)])
	from := max(valid, h.From)
	if c.O.Applies(claims.HonestPaused) {
		for _, p := range pauses[c.Client(h.Span)] {
			if p.From < until && p.Until > from { // it can be reported when the client resumes
				from = p.Until
			}
		}
	}
	if until-from > c.O.Slack() && until > from {
		c.Found.Add(finding.Finding{Rule: claims.LossLate, X: i, Y: h.Span, Start: from, End: until})
	}
}

// judgeUnfounded judges a hold that ended with a reported loss.
func judgeUnfounded(c *claims.Check, i int32, away excuse.OutageWindows) {
	h := &c.Holds[i]
	if !c.LossReported(h) || c.O.Applies(claims.HonestReopened) && c.Reopened(h) {
		return
	}
	t := h.Until
	if h.LastPromise()-t <= c.O.Slack() || away.Touches(segment.Of(h.From, t)) {
		return
	}
	// The promise to an inner level that was released says nothing about the outer one, whose lease may be shorter.
	if left := c.LevelsLeft(h); len(left) > 0 && left.Longest().Until-t <= c.O.Slack() {
		return
	}
	if mayBeGrantedBy(c, i, t) {
		return
	}
	c.Found.Add(finding.Finding{Rule: claims.LossUnfounded, X: i, Y: h.Span, Start: t, End: t})
}

// mayBeGrantedBy reports whether another owner may have been granted the lock during hold i and before t: one with a
// known grant, within the slack, or one whose acquire had an unknown outcome.
func mayBeGrantedBy(c *claims.Check, i int32, t time.Duration) bool {
	h := &c.Holds[i]
	if c.Unknown()[h.Key] <= t {
		return true
	}
	holds := c.ByKey[h.Key]
	n := sort.Search(len(holds), func(n int) bool { return c.Holds[holds[n]].From >= h.From })
	for m := max(0, n-ledger.MaxLookBack); m < len(holds); m++ {
		y := &c.Holds[holds[m]]
		if y.From > segment.Later(t, c.O.Slack()) {
			break
		}
		if y.Owner != h.Owner && y.Asked <= t && y.Until >= h.From {
			return true
		}
	}
	return false
}
