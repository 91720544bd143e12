package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeAfterRelease judges notices about holds that were released: a watchdog that is not stopped keeps the lock from
// others, or reports the loss of what its user gave back. The reply to a last renewal may come after that to the
// release, as late as the network is slow or the client was paused.
func (c *honestyCheck) judgeAfterRelease() {
	var dis *disturbances
	for i := range c.h.Notices {
		n := &c.h.Notices[i]
		if n.F != history.Lost && n.F != history.Renewed || c.h.Limit(n.Key) != 0 || c.ownerOrder[n.Owner] != sequential {
			continue
		}
		x, held := c.lastHold(n.Owner, n.Key, n.Time)
		if !held || n.Time <= later(c.holds[x].freeBy, c.o.slack()) || !c.allReleased(n) {
			continue
		}
		if dis == nil {
			d := c.disturbances(c.o)
			dis = &d
		}
		h := &c.holds[x]
		if c.o.applies(honestPaused) && dis.touch(segment{h.asked, n.Time}, c.client(h.span), history.AffectsClients,
			history.AffectsTraffic) {
			continue
		}
		c.found.add(finding{rule: noticedAfter, x: x, y: int32(i), start: h.freeBy, end: n.Time})
	}
}

// allReleased reports whether each hold that the owner in n certainly or perhaps had of the key was released, and not
// by force.
func (c *honestyCheck) allReleased(n *history.Notice) bool {
	if len(c.forced()[n.Key]) > 0 {
		return false
	}
	for i := range c.h.Spans {
		if s := &c.h.Spans[i]; s.Owner == n.Owner && s.Key == n.Key && s.Outcome == history.Info && aboutHold(s.Op) {
			return false
		}
	}
	for _, i := range c.byKey[n.Key] {
		if h := &c.holds[i]; h.owner == n.Owner && h.from <= n.Time && c.endOf(h) != Released {
			return false
		}
	}
	return true
}

func (v *view) noticedViolation(f finding) Violation {
	h, n := &v.holds[f.x], &v.h.Notices[f.y]
	w := v.involving("", h.span)
	w.Rule, w.Events = "a hold that was released is neither renewed nor lost", []int{v.granted(h), int(n.Index)}
	what := "renewed"
	if n.F == history.Lost {
		what = "reported the loss of"
	}
	w.Text = fmt.Sprintf("client %d %s %s at %s, although it had released it by %s", w.Clients[0], what, lockName(w.Key),
		format.Instant(n.Time), format.Instant(f.start))
	return w
}
