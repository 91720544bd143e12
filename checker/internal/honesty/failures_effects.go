package honesty

import (
	"fmt"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeEffectsOfFailures finds the releases that ended with an error and with certainty had no effect, but after which
// another owner was granted the lock before the promise to the releaser had ended: they did have an effect. A fault
// since the grant that may have changed the data of servers excuses the lock, as does a forced release.
func judgeEffectsOfFailures(c *claims.Check) {
	for _, f := range c.H.Failures {
		s := &c.H.Spans[f.Span]
		if s.Op != history.OpRelease || s.Outcome != history.Fail || s.Held || c.H.Limit(s.Key) != 0 {
			continue
		}
		n, held := c.LastHold(s.Owner, s.Key, s.Call)
		if !held {
			continue
		}
		h := &c.Holds[n]
		if h.EndEvent != s.Invoked && h.EndEvent != s.Ended || len(c.LevelsLeft(h)) != 1 {
			continue
		}
		other := claims.GrantedWithin(c.View, h, segment.Of(s.Call, h.LastPromise()-c.O.ClockError))
		if other == refs.None {
			continue
		}
		during := segment.Of(h.Asked, c.Holds[other].From)
		if !c.Touched(c.Dis, during) && !claims.ReleasedIn(c.View, s, during) {
			c.Found.Add(finding.Finding{Rule: claims.FailedWithEffect, X: other, Y: f.Span, Start: s.Call,
				End: c.Holds[other].From})
		}
	}
}

// failedWithEffectViolation describes a finding of judgeEffectsOfFailures.
func failedWithEffectViolation(c *claims.Check, f finding.Finding) property.Violation {
	s, g := &c.H.Spans[f.Y], &c.Holds[f.X]
	w := finding.Involving(c.View, "", f.Y, g.Span)
	w.Rule = "an operation that fails with certainty has no effect"
	w.Events = []int{int(s.Invoked), int(s.Ended), c.Granted(g)}
	w.Text = fmt.Sprintf("the release of %s by client %d at %s ended with an error that says that it was not done, but "+
		"client %d was granted the lock at %s, before the promise to client %d had ended", finding.LockName(w.Key),
		w.Clients[0],
		format.Instant(s.Call), w.Clients[1], format.Instant(g.From), w.Clients[0])
	return w
}
