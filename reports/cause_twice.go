package reports

import "github.com/lockchaos/lockchaos/history"

// Requests that servers executed twice.

// findExecutedTwice: requests were executed twice when one node granted the lock twice, or counted too many holds.
func findExecutedTwice(q *inquiry) *cause {
	from, until := q.v.Start, q.v.End
	if q.p != nil {
		from, until = q.p.a.Asked, q.p.b.From
	}
	all := q.r.effectiveFaults(from, until, (*injection).duplicates)
	if len(all) == 0 {
		return nil
	}
	f := all[0]
	if q.p != nil {
		node := q.node()
		if node == "" || q.p.outlived() {
			return nil
		}
		return blame(f, "requests of clients were executed twice from %s (%s): %s", f.took(), f, q.twoGrants(node))
	}
	asked, h := q.granted(func(s *history.Span) bool { return q.cites(s.Ended) })
	if h == nil {
		return nil
	}
	twice := q.countAbove(h)
	if twice == nil {
		return nil
	}
	return q.countedTwice(f, asked, h, twice, say("was executed twice (%s since %s)", f, f.took()))
}

// granted is the first successful acquire that ok accepts, and the hold that it began; nil if there is none.
func (q *inquiry) granted(ok func(*history.Span) bool) (*history.Span, *hold) {
	s := firstOf(q.r.History.Spans, func(s *history.Span) bool { return taking(s) && s.Outcome == history.OK && ok(s) })
	if s == nil {
		return nil, nil
	}
	return s, q.r.lastHold(s.Owner, s.Key, s.Return)
}
