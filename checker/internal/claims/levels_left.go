package claims

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/history"
)

// LevelsLeft are the promises to the levels that a hold had when it ended. Which of several levels a notice renews is
// not known.
func (c *Check) LevelsLeft(h *ledger.Hold) LevelPromises {
	return c.levelsWithout(h, func(p ReceivedPromise) bool { return p.Kind == PromiseOver })
}

// LongestLeft is the end of the longest promise to a level that a hold may have had when it ended: a release of
// unknown outcome may have had no effect. 0: none is known.
func (c *Check) LongestLeft(h *ledger.Hold) time.Duration {
	return c.levelsWithout(h, func(p ReceivedPromise) bool {
		return p.Kind == PromiseOver && c.H.Spans[p.Span].Outcome == history.OK
	}).Longest().Until
}

// levelsWithout are the promises to the levels of a hold without the ones that a release ended.
func (c *Check) levelsWithout(h *ledger.Hold, released func(ReceivedPromise) bool) (levels LevelPromises) {
	for _, p := range c.Promises().Of(h) {
		if p.notice && len(levels) > 1 || p.Kind == PromiseOver && !released(p) {
			continue
		}
		levels.Apply(p)
	}
	return levels
}
