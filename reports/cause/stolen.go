package cause

import (
	"cmp"
	"slices"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/kept"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Holds that are taken from their owner by a request that does not compare the value of the key.

// findStolen: a server kept the lock for one client, and then for another one, whose renewal or acquire had not found
// out that the first had it; or a renewal succeeded although another client had the lock.
func findStolen(q *inquiry) *Cause {
	switch {
	case q.p != nil:
		return cmp.Or(q.renewedBack(), q.setBackBetween())
	case q.property != checker.Honesty:
		return nil
	}
	for s, victim := range q.r.Thefts() {
		if q.about(s.Key) && s.First.Time == q.v.Start && slices.Contains(q.v.Owners, q.r.OwnerName(victim.Owner)) {
			return q.stolen(s, victim, q.r.HoldOf(s.Span))
		}
	}
	if rel, mine, other := q.wrongRelease(); rel != nil {
		return q.setBack(rel, mine, other)
	}
	return cmp.Or(q.renewedAnother(), q.deniedAfterRenewal())
}

// findOverwritten: the second of two holders took the lock from the first, whose lease was running.
func findOverwritten(q *inquiry) *Cause {
	if q.p == nil || q.p.Outlived() {
		return nil
	}
	for s, victim := range q.r.Thefts() {
		if victim == q.p.A && q.p.B.Span == s.Span {
			return q.stolen(s, victim, q.p.B)
		}
	}
	return nil
}

// stolen is the cause of a value that replaced another one.
func (q *inquiry) stolen(s *kept.Stay, victim, thief *evidence.Hold) *Cause {
	was, node := s.Replaced.Last, s.Node
	it := "it"
	if q.p == nil {
		it = evidence.Quote(q.v.Key)
	}
	c := because("%s took %s from %s, which had been granted it at %s: %s kept it for %s at %s", thief, it, victim,
		victim.GrantedAt(), node, victim, was)
	if was.Keys[q.v.Key].TTL >= 0 {
		c.Add(", with a lease until %s,", evidence.LeaseAt(was, q.v.Key))
	}
	c.Add(" and for %s at %s", thief, s.First)
	if q.p == nil {
		c.explain(q.r.StepAt(int(thief.Granted)), q.r.StepAt(int(victim.Granted)))
	}
	c.explain(seenIn(s.First, 10, "%s has the key for %s, and no longer for %s", node, thief, victim))
	if thief.From > was.Time { // by the request that was granted
		c.Add("; the acquire of %s, granted at %s, set the key although it was taken", thief, thief.GrantedAt())
		return c.advised("overwritten")
	}
	late, f := q.r.RenewedLate(thief, s.First.Time)
	if f != nil {
		c.Faults = append(c.Faults, f)
	}
	c.Add("; %s", late)
	return c
}

// renewedAnother: the violation is that a renewal succeeded although another client had the lock.
func (q *inquiry) renewedAnother() *Cause {
	renewed := evidence.FirstOf(q.r.History.Spans, func(s *history.Span) bool {
		return s.Op == history.OpRenew && s.Outcome == history.OK && q.about(s.Key) && q.cites(s.Ended)
	})
	if renewed == nil {
		return nil
	}
	other := evidence.FirstOf(q.r.Holds, func(h *evidence.Hold) bool {
		held := h.Owner != renewed.Owner && h.Key == renewed.Key && h.From <= renewed.Call
		return held && (q.cites(h.Granted) || q.r.OneServer() && renewed.Return <= h.To)
	})
	if other == nil {
		return nil
	}
	return because("%s", q.r.RenewedOver(renewed, other))
}

// deniedAfterRenewal: a release or renewal was refused to the holder, after a renewal of another owner had succeeded
// during the hold.
func (q *inquiry) deniedAfterRenewal() *Cause {
	denied := evidence.FirstOf(q.r.History.Spans, func(s *history.Span) bool {
		return (s.Op == history.OpRelease || s.Op == history.OpRenew) && s.Outcome == history.Fail && q.about(s.Key) &&
			q.cites(s.Ended)
	})
	if denied == nil || !q.r.OneServer() {
		return nil
	}
	mine := q.r.LastHold(denied.Owner, denied.Key, denied.Call)
	renewed := evidence.FirstOf(q.r.History.Spans, func(s *history.Span) bool {
		return mine != nil && s.Op == history.OpRenew && s.Outcome == history.OK && s.Key == mine.Key &&
			s.Owner != mine.Owner && s.Call >= mine.From && s.Call < denied.Return
	})
	if renewed == nil {
		return nil
	}
	c := because("%s", q.r.RenewedOver(renewed, mine))
	c.Add("; the %s by %s was refused at %s", evidence.OpName(denied.Op), mine, evidence.ReplyAt(denied))
	return c.explain(q.r.StepAt(int(renewed.Invoked)), q.r.StepAt(int(renewed.Ended)))
}

// setBackBetween: between the grants of two holders, a client whose hold had ended set the key back and released it.
func (q *inquiry) setBackBetween() *Cause {
	for rel, mine := range q.releases() {
		if mine == nil || mine.From >= q.p.A.From || q.p.Outlived() {
			continue
		}
		if c := q.setBack(rel, mine, q.p.A); c != nil {
			c.Add("; %s got %s at %s", q.p.B, q.p.B.Object("the lock"), q.p.B.GrantedAt())
			return c
		}
	}
	return nil
}

// setBack is the cause of a release that succeeded although another client had been granted the lock; nil: nothing
// shows that the key had been set back.
func (q *inquiry) setBack(rel *history.Span, mine, other *evidence.Hold) *Cause {
	text, steps, f := q.r.SetBack(rel, mine, other)
	switch {
	case text.Text == "":
		return nil
	case f != nil:
		return blame(f, "%s", text).explain(steps...)
	}
	return because("%s", text).explain(steps...)
}

// renewedBack: the first of two holders outlived its promise, and renewed the lock after the grant to the second.
func (q *inquiry) renewedBack() *Cause {
	p := q.p
	if !p.Outlived() || p.A.ValidUntil() <= p.B.From {
		return nil
	}
	again := evidence.FirstOf(q.r.History.Spans, func(s *history.Span) bool {
		return s.Op == history.OpRenew && s.Outcome == history.OK && s.Owner == p.A.Owner && s.Key == p.A.Key &&
			s.Return >= p.B.From
	})
	c := because("%s, granted %s at %s, ", p.A, p.A.It(), p.A.GrantedAt())
	if f := q.r.FaultIn(p.A, p.A.From, p.B.From); f != nil {
		c.blame(f, "%s, past the end of %s at %s; ", f.During(), p.ValidityName(), p.Validity())
	} else {
		c.Add("kept it past the end of %s at %s; ", p.ValidityName(), p.Validity())
	}
	c.Add("%s got %s at %s", p.B, p.B.Object("the lock"), p.B.GrantedAt())
	if again == nil {
		c.Add(", and %s renewed it after that", p.A)
		return c
	}
	c.Add(", and %s renewed it at %s without an error", p.A, evidence.ReplyAt(again))
	return c.explain(q.r.StepAt(int(again.Ended)))
}
