package reports

import (
	"cmp"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// findForeignData: another program keeps data at the key of a lock, which the lock changed or deleted, or took for a
// hold of another owner.
func findForeignData(q *inquiry) *cause {
	if q.p != nil {
		return nil
	}
	for _, f := range q.r.effectiveFaults(q.v.Start, q.v.End, (*injection).plantsData) {
		if f.healEvent < 0 {
			continue
		}
		c := blame(f, "data of another program were at the key %s on %s from %s (%s), and ", quote(q.v.Key),
			f.target, f.took(), f)
		if q.property == checker.Damage && q.cites(f.event) {
			c.add("a client changed or deleted them by %s", f.healed())
			return c
		}
		refused, seen := q.refused(), q.seenForeign(f)
		if refused == nil || seen == nil {
			continue
		}
		c.add("still at %s: the %s of %s, sent at %s, was refused at %s", seen, refused.Op, q.r.who(refused.Process),
			callAt(refused), replyAt(refused))
		return c
	}
	return nil
}

// refused is the first acquire or try that the violation names and that was refused; nil if there is none.
func (q *inquiry) refused() *history.Span {
	return firstOf(q.r.History.Spans, func(s *history.Span) bool {
		return taking(s) && s.Outcome == history.Fail && q.cites(s.Ended)
	})
}

// seenForeign is the last sample before the end of the violation in which a node that f hit has the key without an
// expiry for none of the owners; nil if there is none.
func (q *inquiry) seenForeign(f *injection) (seen *history.Sample) {
	for _, node := range f.nodes(q.r) {
		seen = cmp.Or(lastOf(q.r.witness.during(node, f.effectTime(), min(q.v.End, f.heal)), func(x *history.Sample) bool {
			k, held := x.Keys[q.v.Key]
			_, ours := q.r.clientOf(k.Owner)
			return held && !ours && k.TTL < 0
		}), seen)
	}
	return seen
}
