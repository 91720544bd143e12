package reports

import (
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// foreignData is the fault that writes data of another program to keys of locks.
const foreignData = "foreign-data"

func foreignDataMechanism() mechanism {
	return mechanism{name: "foreign-data", find: findForeignData, advice: []adviceItem{{
		Text: "Give the keys of locks a prefix that no other program uses, and check the type and format of a value " +
			"before overwriting or deleting it.",
		Cost: "a script instead of a single command",
	}}}
}

// findForeignData: another program keeps data at the key of a lock, which the lock changed or deleted, or took for a
// hold of another owner.
func findForeignData(q *inquiry) *cause {
	if q.p != nil {
		return nil
	}
	for i := range q.r.faults {
		f := &q.r.faults[i]
		if !f.is(foreignData) || !f.effective(q.v.Start, q.v.End) || f.healEvent < 0 {
			continue
		}
		c := &cause{faults: []*injection{f}}
		if q.property == checker.Damage && slices.Contains(q.v.Events, int(f.event)) {
			c.text = fmt.Sprintf("data of another program were at the key %s on %s from %s (%s), and a client changed or "+
				"deleted them by %s", quote(q.v.Key), f.target, q.s.instant(f.took()), quote(f.name), q.s.instant(f.healed()))
			return c
		}
		refused, seen := q.refused(), q.seenForeign(f)
		if refused == nil || seen == nil {
			continue
		}
		client := clientName(refused.Process.Client(q.r.History.Clients))
		c.text = fmt.Sprintf("data of another program were at the key %s on %s from %s (%s), and still at %s: the %s of %s, "+
			"sent at %s, was refused at %s", quote(q.v.Key), f.target, q.s.instant(f.took()), quote(f.name),
			q.s.instant(sampleAt(seen)), refused.Op, client, q.s.instant(eventAt(refused.Invoked, refused.Call)),
			q.s.instant(eventAt(refused.Ended, refused.Return)))
		return c
	}
	return nil
}

// refused is the first acquire or try that the violation names and that was refused; nil if there is none.
func (q *inquiry) refused() *history.Span {
	for i := range q.r.History.Spans {
		s := &q.r.History.Spans[i]
		asked := s.Op == history.OpAcquire || s.Op == history.OpTry
		if asked && s.Outcome == history.Fail && slices.Contains(q.v.Events, int(s.Ended)) {
			return s
		}
	}
	return nil
}

// seenForeign is the last sample before the end of the violation in which a node that f hit has the key without an
// expiry for none of the owners; nil if there is none.
func (q *inquiry) seenForeign(f *injection) (seen *history.Sample) {
	for _, node := range f.nodes(q.r) {
		samples := q.r.witness.during(node, f.effectTime(), min(q.v.End, f.heal))
		for i := range samples {
			k, held := samples[i].Keys[q.v.Key]
			if _, ours := q.r.clientOf(k.Owner); held && !ours && k.TTL < 0 {
				seen = &samples[i]
			}
		}
	}
	return seen
}
