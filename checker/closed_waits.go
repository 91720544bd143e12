package checker

import (
	"slices"

	"github.com/lockchaos/lockchaos/history"
)

// judgeClosedWaits finds the acquires that returned later than the slack after their client had closed its lock object,
// although the servers were available and the client was running.
func (v *view) judgeClosedWaits(o Options, found *findings) {
	for _, c := range v.h.Closings {
		away := v.outagesFor(scopeOf(&v.h.Spans[c.Span]), o)
		p := longestOutside(segment{c.Closed, c.Time}, o.excusedBy(wakePaused, v.clientPauses()[v.client(c.Span)]),
			o.excusedBy(wakeOutage, away.windows))
		if p.until-p.from > o.slack() {
			found.add(finding{rule: closedWait, x: none, y: c.Span, start: c.Closed, end: c.Time})
		}
	}
}

// wasClosed reports whether the lock object was closed during an acquire.
func (v *view) wasClosed(span int32) bool {
	return slices.ContainsFunc(v.h.Closings, func(c history.Closing) bool { return c.Span == span })
}
