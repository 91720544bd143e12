package honesty

import (
	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeLateRenewals finds the renewals by hand that returned, or to which there was no reply, more than the slack after
// each promise to their owner had ended, at a lock that states that a renewal ends with its hold. What the servers or
// the network do is no excuse.
func judgeLateRenewals(c *claims.Check) {
	if !c.O.States(promise.RenewalsEndWithHold) {
		return
	}
	for i, s := range refs.At(c.H.Spans, c.Rare) {
		if s.Op != history.OpRenew || s.Outcome == history.OK {
			continue
		}
		until, known := s.Return, true
		if s.Outcome == history.Info {
			until, known = c.Completed()[i] // when the harness stopped waiting
		}
		end := s.Call
		if !known || until-end <= c.O.Slack() {
			continue
		}
		promises := c.Promises().All(s.Owner, s.Key)
		for _, p := range promises {
			if p.Event < s.Ended || s.Ended < 0 {
				end = max(end, p.Until)
			}
		}
		late := segment.Of(end, until)
		if len(promises) == 0 || until-end <= c.O.Slack() ||
			c.O.Applies(claims.HonestPaused) && c.Dis.Any(late, func(f *excuse.FaultTime) bool { return stops(c, f, i) }) {
			continue
		}
		c.Found.Add(finding.Finding{Rule: claims.RenewalWaited, X: refs.None, Y: i, Start: end, End: until})
	}
}

// stops reports whether a fault stops the client of a span, or the harness.
func stops(c *claims.Check, f *excuse.FaultTime, span int32) bool {
	at := f.Client()
	return f.States(history.AffectsClients) && (at < 0 || at == c.Client(span)) || f.Stall && at < 0
}
