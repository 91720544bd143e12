package honesty

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeAfterRelease judges notices about holds that were released: a watchdog that is not stopped keeps the lock from
// others, or reports the loss of a lock that its user gave back. The reply to a last renewal may come after the reply
// to the release, as late as the network is slow or the client was paused. A release or an acquire that ended with an
// unknown outcome ends the renewals too: its caller has nothing left to release, unless it tries again. So does an
// acquire whose grant was undone.
func judgeAfterRelease(c *claims.Check) {
	for i, n := range refs.All(c.H.Notices) {
		if n.F != history.Lost && n.F != history.Renewed || c.H.Limit(n.Key) != 0 ||
			c.OwnerOrder[n.Owner] == ledger.OrdUnknown {
			continue
		}
		x, held := c.LastHold(n.Owner, n.Key, n.Time)
		if held && c.Holds[x].Until >= n.Time {
			continue
		}
		if held && c.EndOf(&c.Holds[x]) == property.Released && n.Time <= segment.Later(c.Holds[x].FreeBy, c.O.Slack()) {
			continue // most of them: this is cheap
		}
		last, over := c.GivenUp(n)
		if !over || n.Time <= segment.Later(last.At, c.O.Slack()) {
			continue
		}
		// A fault that was over before that has delayed nothing until now; it may be why the outcome is unknown.
		since := segment.Of(n.Time-2*c.O.Slack(), n.Time)
		if !c.O.Applies(claims.HonestPaused) ||
			!c.Dis.MayAffect(since, c.Client(last.Span), history.AffectsClients, history.AffectsTraffic) {
			c.Found.Add(finding.Finding{Rule: claims.NoticedAfter, X: last.Span, Y: i, Start: last.At, End: n.Time})
		}
	}
}

func noticedViolation(c *claims.Check, f finding.Finding) property.Violation {
	s, n := &c.H.Spans[f.X], &c.H.Notices[f.Y]
	w := finding.Involving(c.View, "", f.X)
	w.Rule, w.Events = "a hold that was released is neither renewed nor lost", []int{int(s.Ended), int(n.Index)}
	did := finding.Either(n.F == history.Lost, "reported the loss of", "renewed")
	why := "it had released it by " + format.Instant(f.Start)
	switch s.Outcome {
	case history.Info:
		why = fmt.Sprintf("its %s had ended at %s with an unknown outcome", s.Op, format.Instant(f.Start))
	case history.Fail:
		why = fmt.Sprintf("its %s had failed at %s, and the grant was undone", s.Op, format.Instant(f.Start))
	}
	w.Text = fmt.Sprintf("client %d %s %s at %s, although %s", w.Clients[0], did, finding.LockName(w.Key),
		format.Instant(n.Time), why)
	return w
}
