package honesty

import (
	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeContradictions finds the operations about which a lock contradicts itself, as its client has seen. A fault that
// may have changed the servers' data excuses the lock: the earlier answer may have been true.
func judgeContradictions(c *claims.Check) {
	for _, x := range refs.All(c.H.Contradicted) {
		if !c.Touched(c.Dis, segment.Of(0, x.Time)) {
			c.Found.Add(finding.Finding{Rule: claims.Contradicted, X: refs.None, Y: x.Span, Start: x.Time, End: x.Time,
				Note: format.Line(x.Text)})
		}
	}
}

// judgeForeign finds the operations about holds that were refused because the key holds something that is not a lock,
// although only clients of the run have used it: any data that they leave is a lock, of its own library perhaps. A
// fault that may have changed the servers' data, or how they execute commands, may have left something else.
func judgeForeign(c *claims.Check) {
	for i, s := range refs.At(c.H.Spans, c.H.Foreign) {
		if !c.O.Applies(claims.HonestData) ||
			!c.Dis.MayAffect(segment.Of(0, s.Return), excuse.AnyClient, history.AffectsData, history.AffectsCommands) {
			c.Found.Add(finding.Finding{Rule: claims.NotForeign, X: refs.None, Y: i, Start: s.Call, End: s.Return})
		}
	}
}

// judgeNotSetUp finds the acquires and tries that state the size of a semaphore and failed because it does not exist:
// the lock could have set it up, unless a fault may have removed it in the meantime.
func judgeNotSetUp(c *claims.Check) {
	for i, s := range refs.At(c.H.Spans, c.H.NotSetUp) {
		if !c.Touched(c.Dis, segment.Of(s.Call, s.Return)) {
			c.Found.Add(finding.Finding{Rule: claims.NotSetUp, X: refs.None, Y: i, Start: s.Call, End: s.Return})
		}
	}
}
