package checker

import (
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeClosings finds the acquires that returned later than the slack after their client had closed its lock object,
// although the servers were available and the client was running.
func (v *view) judgeClosings(o Options, found *findings) {
	if len(v.h.Closings) == 0 {
		return
	}
	pauses := v.clientPauses()
	for _, c := range v.h.Closings {
		s := &v.h.Spans[c.Span]
		var without []segment
		if o.applies(wakePaused) {
			without = pauses[v.client(c.Span)]
		}
		if o.applies(wakeOutage) {
			without = merged(v.outagesFor(concernOf(s), o).windows, without)
		}
		if p := longestOutside(segment{c.Closed, c.Time}, without); p.until-p.from > o.slack() {
			found.add(finding{rule: closedWait, x: none, y: c.Span, start: c.Closed, end: c.Time})
		}
	}
}

// wasClosed reports whether the lock object was closed during an acquire.
func (v *view) wasClosed(span int32) bool {
	return slices.ContainsFunc(v.h.Closings, func(c history.Closing) bool { return c.Span == span })
}

// closedWaitViolation describes a finding of judgeClosings.
func (v *view) closedWaitViolation(f finding) Violation {
	s := &v.h.Spans[f.y]
	w := v.spanViolation(f.y, "an acquire ends when its lock object is closed", "")
	w.Class = ""
	w.Text = fmt.Sprintf("client %d requested %s at %s and closed its lock object at %s, but the acquire returned only "+
		"%s later", w.Clients[0], lockName(w.Key), format.Instant(s.Call), format.Instant(f.start),
		format.Duration(f.end-f.start))
	return w
}
