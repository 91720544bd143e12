package cause

import (
	"cmp"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// findForeignData: another program keeps data at the key of a lock, which the lock changed or deleted, or took for a
// hold of another owner.
func findForeignData(q *inquiry) *Cause {
	if q.p != nil {
		return nil
	}
	for _, f := range q.r.EffectiveFaults(q.v.Start, q.v.End, (*evidence.Fault).PlantsData) {
		if f.HealEvent < 0 {
			continue
		}
		c := blame(f, "data of another program were at the key %s on %s from %s (%s), and ", evidence.Quote(q.v.Key),
			f.Target, f.Took(), f)
		if q.property == checker.Damage && q.cites(f.Event) {
			c.Add("a client changed or deleted them by %s", f.Healed())
			return c
		}
		refused, seen := q.refused(), q.seenForeign(f)
		if refused == nil || seen == nil {
			continue
		}
		c.Add("still at %s: the %s of %s, sent at %s, was refused at %s", seen, refused.Op, q.r.Who(refused.Process),
			evidence.CallAt(refused), evidence.ReplyAt(refused))
		return c
	}
	return nil
}

// refused is the first acquire or try that the violation names and that was refused; nil if there is none.
func (q *inquiry) refused() *history.Span {
	return evidence.FirstOf(q.r.History.Spans, func(s *history.Span) bool {
		return evidence.Taking(s) && s.Outcome == history.Fail && q.cites(s.Ended)
	})
}

// seenForeign is the last sample before the end of the violation in which a node that f hit has the key without an
// expiry for none of the owners; nil if there is none.
func (q *inquiry) seenForeign(f *evidence.Fault) (seen *history.Sample) {
	for _, node := range f.Nodes(q.r) {
		seen = cmp.Or(evidence.LastOf(q.r.Witness.During(node, f.EffectTime(), min(q.v.End, f.Heal)),
			func(x *history.Sample) bool {
				k, held := x.Keys[q.v.Key]
				_, ours := q.r.ClientOf(k.Owner)
				return held && !ours && k.TTL < 0
			}), seen)
	}
	return seen
}
