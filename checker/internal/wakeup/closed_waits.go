package wakeup

import (
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
)

// judgeClosedWaits finds the acquires that returned later than the slack after their client had closed its lock object,
// although the servers were available and the client was running.
func judgeClosedWaits(v *bounds.View, o given.Options, found *finding.Findings) {
	for _, c := range v.H.Closings {
		away := v.OutagesFor(excuse.ScopeOf(&v.H.Spans[c.Span]), o)
		p := segment.LongestOutside(segment.Of(c.Closed, c.Time), o.ExcusedBy(wakePaused, v.ClientPauses()[v.Client(c.Span)]),
			o.ExcusedBy(wakeOutage, away.Windows))
		if p.Until-p.From > o.Slack() {
			found.Add(finding.Finding{Rule: closedWait, X: refs.None, Y: c.Span, Start: c.Closed, End: c.Time})
		}
	}
}
