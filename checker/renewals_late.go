package checker

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeLateRenewals finds the renewals by hand that returned, or to which there was no reply, more than the slack after
// each promise to their owner had ended, at a lock that states that a renewal ends with its hold. What the servers or
// the network do is no excuse.
func (c *honestyCheck) judgeLateRenewals() {
	if !c.o.states(promise.RenewalsEndWithHold) {
		return
	}
	for i, s := range refsAt(c.h.Spans, c.rare) {
		if s.Op != history.OpRenew || s.Outcome == history.OK {
			continue
		}
		until, known := s.Return, true
		if s.Outcome == history.Info {
			until, known = c.completed()[i] // when the harness stopped waiting
		}
		end := s.Call
		if !known || until-end <= c.o.slack() {
			continue
		}
		promises := c.promises().all(s.Owner, s.Key)
		for _, p := range promises {
			if p.event < s.Ended || s.Ended < 0 {
				end = max(end, p.until)
			}
		}
		late := segment{end, until}
		if len(promises) == 0 || until-end <= c.o.slack() ||
			c.o.applies(honestPaused) && c.dis.any(late, func(f *faultTime) bool { return c.stops(f, i) }) {
			continue
		}
		c.found.add(finding{rule: renewalWaited, x: none, y: i, start: end, end: until})
	}
}

// stops reports whether a fault stops the client of a span, or the harness.
func (c *honestyCheck) stops(f *faultTime, span int32) bool {
	at := f.client()
	return f.states(history.AffectsClients) && (at < 0 || at == c.client(span)) || f.stall && at < 0
}
