package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeAfterRelease judges notices about holds that were released: a watchdog that is not stopped keeps the lock from
// others, or reports the loss of a lock that its user gave back. The reply to a last renewal may come after the reply
// to the release, as late as the network is slow or the client was paused. A release or an acquire that ended with an
// unknown outcome ends the renewals too: its caller has nothing left to release, unless it tries again. So does an
// acquire whose grant was undone.
func (c *honestyCheck) judgeAfterRelease() {
	for i, n := range refs(c.h.Notices) {
		if n.F != history.Lost && n.F != history.Renewed || c.h.Limit(n.Key) != 0 || c.ownerOrder[n.Owner] == ordUnknown {
			continue
		}
		x, held := c.lastHold(n.Owner, n.Key, n.Time)
		if held && c.holds[x].until >= n.Time {
			continue
		}
		if held && c.endOf(&c.holds[x]) == Released && n.Time <= later(c.holds[x].freeBy, c.o.slack()) {
			continue // most of them: this is cheap
		}
		last, over := c.givenUp(n)
		if !over || n.Time <= later(last.at, c.o.slack()) {
			continue
		}
		// A fault that was over before that has delayed nothing until now; it may be why the outcome is unknown.
		since := segment{n.Time - 2*c.o.slack(), n.Time}
		if !c.o.applies(honestPaused) ||
			!c.dis.mayAffect(since, c.client(last.span), history.AffectsClients, history.AffectsTraffic) {
			c.found.add(finding{rule: noticedAfter, x: last.span, y: i, start: last.at, end: n.Time})
		}
	}
}

func (v *view) noticedViolation(f finding) Violation {
	s, n := &v.h.Spans[f.x], &v.h.Notices[f.y]
	w := v.involving("", f.x)
	w.Rule, w.Events = "a hold that was released is neither renewed nor lost", []int{int(s.Ended), int(n.Index)}
	did := either(n.F == history.Lost, "reported the loss of", "renewed")
	why := "it had released it by " + format.Instant(f.start)
	switch s.Outcome {
	case history.Info:
		why = fmt.Sprintf("its %s had ended at %s with an unknown outcome", s.Op, format.Instant(f.start))
	case history.Fail:
		why = fmt.Sprintf("its %s had failed at %s, and the grant was undone", s.Op, format.Instant(f.start))
	}
	w.Text = fmt.Sprintf("client %d %s %s at %s, although %s", w.Clients[0], did, lockName(w.Key),
		format.Instant(n.Time), why)
	return w
}
