package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// extendError is by how much a renewal has to extend a promise to be judged: round trips and rounding.
const extendError = 20 * time.Millisecond

// judgeExtended judges the renewals that were requested of a lock that replies with a validity: a success extends the
// promise to the requested lease, or to the lease of the grant. A hold with several levels, and a hold that the lock
// also renews by itself, are not judged: it is not known which promise a reply extends.
func (c *honestyCheck) judgeExtended() {
	if !c.hasRare(func(s *history.Span) bool {
		return s.Op == history.OpRenew && s.Outcome == history.OK && s.Valid != 0
	}) {
		return
	}
	for i, h := range refs(c.holds) {
		if c.h.Limit(h.key) != 0 {
			continue
		}
		list := c.promises().of(h)
		for n := 1; n < len(list) && list[n].span != none && list[n].kind == promiseReplaced; n++ {
			before, p := list[n-1], list[n]
			s := &c.h.Spans[p.span]
			length := before.until - before.at
			if s.Lease > 0 {
				length = min(length, s.Lease*9/10)
			} else {
				length = min(length, list[0].until-list[0].at)
			}
			if s.Valid == 0 || s.Call+length <= before.until+extendError || p.until > before.until+keepError(0, Options{}) {
				continue
			}
			c.found.add(finding{rule: notExtended, x: i, y: p.span, start: s.Call, end: s.Return,
				note: format.Instant(p.until)})
			break
		}
	}
}
