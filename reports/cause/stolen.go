package cause

import (
	"iter"
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
		return q.renewedBack()
	case q.property != checker.Honesty:
		return nil
	}
	for s, victim := range q.thefts() {
		if s.First.Time == q.v.Start && slices.Contains(q.v.Owners, q.r.OwnerName(victim.Owner)) {
			return q.stolen(s, victim, q.r.HoldOf(s.Span))
		}
	}
	return q.renewedAnother()
}

// findOverwritten: the second of two holders took the lock from the first, whose lease was running.
func findOverwritten(q *inquiry) *Cause {
	if q.p == nil || q.p.Outlived() {
		return nil
	}
	for s, victim := range q.thefts() {
		if victim == q.p.A && q.p.B.Span == s.Span {
			return q.stolen(s, victim, q.p.B)
		}
	}
	return nil
}

// thefts are the values that replaced another one whose hold was in force, as the checkers found, each with that hold.
func (q *inquiry) thefts() iter.Seq2[*kept.Stay, *evidence.Hold] {
	return func(yield func(*kept.Stay, *evidence.Hold) bool) {
		for _, s := range q.r.Kept.Replacing() {
			if !q.about(s.Key) || s.Span == kept.None || s.Replaced.Span == kept.None {
				continue
			}
			victim, thief := q.r.HoldOf(s.Replaced.Span), q.r.HoldOf(s.Span)
			if victim != nil && thief != nil && q.convicted(s, victim, thief) && !yield(s, victim) {
				return
			}
		}
	}
}

// convicted reports whether honesty is violated because a hold was replaced by another one.
func (q *inquiry) convicted(s *kept.Stay, victim, thief *evidence.Hold) bool {
	of := []string{q.r.OwnerName(victim.Owner), q.r.OwnerName(thief.Owner)}
	for res, v := range q.r.Violations() {
		if res.Property == checker.Honesty && v.Start == s.First.Time && slices.Equal(v.Owners, of) {
			return true
		}
	}
	return false
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
		c.explain(q.step(int(thief.Granted)), q.step(int(victim.Granted)))
	}
	c.explain(seenIn(s.First, 10, "%s has the key for %s, and no longer for %s", node, thief, victim))
	if thief.From > was.Time { // by the request that was granted
		c.Add("; the acquire of %s, granted at %s, set the key although it was taken", thief, thief.GrantedAt())
		return c.advised("overwritten")
	}
	c.Add("; %s", thief)
	return q.pastValidity(c, thief, s.First)
}

// pastValidity adds why the renewal of a client came when it no longer had the lock.
func (q *inquiry) pastValidity(c *Cause, thief *evidence.Hold, seen *history.Sample) *Cause {
	c.Add(", granted it at %s, ", thief.GrantedAt())
	if end := thief.ValidAt(seen.Time); end != 0 && end < seen.Time {
		if f := q.r.FaultIn(thief, thief.From, seen.Time); f != nil {
			c.blame(f, "%s, past the end of %s at %s, and ", f.During(), q.r.ValidityName(thief), q.r.Validity(thief))
		} else {
			c.Add("whose validity had ended, ")
		}
	}
	c.Add("renewed it without comparing the value of the key")
	return c
}

// renewedAnother: the violation is that a renewal succeeded although another client had the lock.
func (q *inquiry) renewedAnother() *Cause {
	renewed := evidence.FirstOf(q.r.History.Spans, func(s *history.Span) bool {
		return s.Op == history.OpRenew && s.Outcome == history.OK && q.about(s.Key) && q.cites(s.Ended)
	})
	other := evidence.FirstOf(q.r.Holds, func(h *evidence.Hold) bool {
		return renewed != nil && h.Owner != renewed.Owner && q.cites(h.Granted) && h.From <= renewed.Call
	})
	if other == nil {
		return nil
	}
	mine := q.r.LastHold(renewed.Owner, renewed.Key, renewed.Call)
	if mine == nil {
		return nil
	}
	return because("%s, granted %s at %s, renewed it at %s without an error, although %s had been granted it at %s", mine,
		evidence.Quote(q.v.Key), mine.GrantedAt(), evidence.CallAt(renewed), other, other.GrantedAt())
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
	c.Add("%s was granted it at %s", p.B, p.B.GrantedAt())
	if again == nil {
		c.Add(", and %s renewed it after that", p.A)
		return c
	}
	c.Add(", and %s renewed it at %s without an error", p.A, evidence.ReplyAt(again))
	return c.explain(q.step(int(again.Ended)))
}
