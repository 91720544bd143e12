package honesty

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// extendError is by how much a renewal has to extend a promise to be judged: round trips and rounding.
const extendError = 20 * time.Millisecond

// judgeExtended judges the renewals that were requested of a lock that replies with a validity: a success extends the
// promise to the requested lease, or to the lease of the grant. A hold with several levels, and a hold that the lock
// also renews by itself, are not judged: it is not known which promise a reply extends.
func judgeExtended(c *claims.Check) {
	if !c.HasRare(func(s *history.Span) bool {
		return s.Op == history.OpRenew && s.Outcome == history.OK && s.Valid != 0
	}) {
		return
	}
	for i, h := range refs.All(c.Holds) {
		if c.H.Limit(h.Key) != 0 {
			continue
		}
		list := c.Promises().Of(h)
		for n := 1; n < len(list) && list[n].Span != refs.None && list[n].Kind == claims.PromiseReplaced; n++ {
			before, p := list[n-1], list[n]
			s := &c.H.Spans[p.Span]
			length := before.Until - before.At
			if s.Lease > 0 {
				length = min(length, s.Lease*9/10)
			} else {
				length = min(length, list[0].Until-list[0].At)
			}
			if s.Valid == 0 || s.Call+length <= before.Until+extendError ||
				p.Until > before.Until+ledger.KeepError(0, given.Options{}) {
				continue
			}
			c.Found.Add(finding.Finding{Rule: claims.NotExtended, X: i, Y: p.Span, Start: s.Call, End: s.Return,
				Note: format.Instant(p.Until)})
			break
		}
	}
}
