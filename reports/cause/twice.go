package cause

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Requests that servers executed twice.

// findExecutedTwice: requests were executed twice when one node granted the lock twice, or counted too many holds.
func findExecutedTwice(q *inquiry) *Cause {
	from, until := q.v.Start, q.v.End
	if q.p != nil {
		from, until = q.p.A.Asked, q.p.B.From
	}
	all := q.r.EffectiveFaults(from, until, (*evidence.Fault).Duplicates)
	if len(all) == 0 {
		return nil
	}
	f := all[0]
	if q.p != nil {
		if !q.oneNode() {
			return nil
		}
		return blame(f, "requests of clients were executed twice from %s (%s): %s", f.Took(), f, q.twoGrants(q.node()))
	}
	asked, h := q.granted(func(s *history.Span) bool { return q.cites(s.Ended) })
	if h == nil {
		return nil
	}
	twice := q.countAbove(h)
	if twice == nil {
		return nil
	}
	return q.countedTwice(f, asked, h, twice, evidence.Say("was executed twice (%s since %s)", f, f.Took()))
}

// granted is the first successful acquire that ok accepts, and the hold that it began; nil if there is none.
func (q *inquiry) granted(ok func(*history.Span) bool) (*history.Span, *evidence.Hold) {
	s := evidence.FirstOf(q.r.History.Spans, func(s *history.Span) bool {
		return evidence.Taking(s) &&
			s.Outcome == history.OK && ok(s)
	})
	if s == nil {
		return nil, nil
	}
	return s, q.r.LastHold(s.Owner, s.Key, s.Return)
}
