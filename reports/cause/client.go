package cause

import (
	"cmp"
	"fmt"
	"iter"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/overlap"
)

// Causes that lie with the clients: a stall, work for too long, a release of another client's lock, clocks.

// findStall: the holder was stopped past the end of its validity.
func findStall(q *inquiry) *Cause { return q.stalled(false) }

// findCutOff: the holder was cut off past the end of its validity, but could work.
func findCutOff(q *inquiry) *Cause { return q.stalled(true) }

// stalled: a fault kept the holder from its work or, if cutOff, only from the servers.
func (q *inquiry) stalled(cutOff bool) *Cause {
	if q.p == nil || !q.p.Outlived() {
		return nil
	}
	f := q.p.FaultOn(cluster.ClientName(q.p.A.Client), q.p.A.Asked, nil)
	if f == nil || f.CutsOff() != cutOff {
		return nil
	}
	p := q.p
	return blame(f, "%s, granted %s at %s, %s, past the end of %s at %s; %s got %s at %s%s", p.A,
		p.A.It(), p.A.GrantedAt(), f.During(), p.ValidityName(), p.Validity(), p.B, p.B.Object("the lock"), p.B.GrantedAt(),
		p.StaleClause())
}

// findOutlived: the holder outlived its validity, and no fault explains why.
func findOutlived(q *inquiry) *Cause {
	if q.p == nil {
		return q.lateWrite()
	}
	if !q.p.Outlived() {
		return nil
	}
	p := q.p
	c := because("%s, granted %s at %s, kept it until %s%s although %s had ended at %s; %s got %s at %s%s", p.A,
		p.A.It(), p.A.GrantedAt(), p.A.EndPoint(p.R), p.EndingA(), p.ValidityName(), p.Validity(), p.B,
		p.B.Object("the lock"), p.B.GrantedAt(), p.StaleClause())
	if f := q.between(); f != nil {
		c.blame(f, "; %s", f.TookEffect())
	}
	return c
}

// lateWrite: the violation is a write after the end of the writer's validity.
func (q *inquiry) lateWrite() *Cause {
	var mine *evidence.Hold
	t := evidence.LastOf(q.r.History.Touches, func(t *history.Touched) bool { // the last write did the damage
		if !q.cites(t.Index) {
			return false
		}
		mine = q.r.LastHold(t.Owner, t.Key, t.Time)
		return mine != nil && mine.ValidUntil() != 0 && mine.ValidUntil() < t.Time
	})
	if t == nil {
		return nil
	}
	wrote, ended := evidence.EventAt(t.Index, t.Time), q.r.Validity(mine)
	c := because("%s, granted %s at %s, wrote at %s, %s after the end of %s at %s", mine, evidence.Quote(q.v.Key),
		mine.GrantedAt(), wrote, evidence.Elapsed(ended, wrote), q.r.ValidityName(mine), ended)
	if t.Read != t.Found {
		c.Add(", over another client's write that it had not read")
	}
	if learned, _, known := q.r.Describe(int(mine.Ended)); known && mine.Lost() && learned < t.Time {
		// the time of the report; the hold may have ended earlier, with its validity
		c.Add("; it had learned of the loss at %s", evidence.EventAt(mine.Ended, learned))
	}
	c.explain(
		evidence.Step{Time: mine.From, Event: int(mine.Granted), Weight: 9,
			Text: fmt.Sprintf("%s is granted %s", mine, evidence.Quote(q.v.Key))},
		evidence.Step{Time: mine.ValidUntil(), Event: -1, Weight: 8, Text: q.r.EndOfValidity(mine)})
	if f := q.r.FaultIn(mine, mine.From, t.Time); f != nil {
		c.blame(f, "; it %s", f.During())
	}
	return c
}

// findForeignRelease: between the two grants, a client that did not hold the lock released it, and the key of the first
// holder was gone after that.
func findForeignRelease(q *inquiry) *Cause {
	switch {
	case q.p == nil:
		return q.wrongReleaseCause()
	case q.p.Outlived():
		return nil
	}
	return cmp.Or(q.foreignRelease(), q.chainedRelease())
}

// foreignRelease is the cause if the hold of that client had ended before, or while its release was kept in flight, or
// if it had none.
func (q *inquiry) foreignRelease() *Cause {
	for rel, mine := range q.releases() {
		if mine == nil || mine.ValidUntil() == 0 || mine.ValidUntil() > q.p.A.From || mine.From > q.p.A.From {
			continue
		}
		from, to := mine.From, rel.Call
		if mine.ValidUntil() > rel.Call {
			from, to = rel.Call, rel.Return
		}
		ended, validity := q.r.Validity(mine), q.r.ValidityName(mine)
		if f := q.r.FaultIn(mine, from, to); f != nil {
			return blame(f, "%[2]s, which %[3]s, past the end of %[4]s at %[1]s, %[5]s", ended, mine, f.During(),
				validity, q.wrongReleaseText(rel))
		}
		if mine.ValidUntil() <= rel.Call {
			return because("%s, after the end of %s at %s, %s", mine, validity, ended, q.wrongReleaseText(rel))
		}
	}
	return q.releaseByNonHolder()
}

// releases are the releases between the two grants that succeeded for another owner, or have no reply and were kept in
// flight until then, each with that owner's last hold; nil: it had none.
func (q *inquiry) releases() iter.Seq2[*history.Span, *evidence.Hold] {
	a, b := q.p.A, q.p.B
	return func(yield func(*history.Span, *evidence.Hold) bool) {
		for s := range evidence.Each(q.r.History.Spans) {
			done := s.Outcome == history.OK || s.Outcome == history.Info && q.heldBack(s)
			if s.Op == history.OpRelease && done && s.Key == a.Key && s.Owner != a.Owner && s.Owner != b.Owner &&
				s.Return > a.From && s.Call < b.From && !yield(s, q.r.LastHold(s.Owner, s.Key, s.Call)) {
				return
			}
		}
	}
}

// heldBack reports whether a fault kept the request of a client from the servers until between the two grants.
func (q *inquiry) heldBack(s *history.Span) bool {
	return nil != evidence.FirstOf(q.r.Faults, func(f *evidence.Fault) bool {
		return f.On(cluster.ClientName(q.r.ClientIn(s.Process))) && f.CutsOff() && f.Effective(s.Call, q.p.A.From) &&
			f.Heal > q.p.A.From && f.Heal < q.p.B.From
	})
}

// chainedRelease: the key of the first holder was deleted by the release of a client that had lost the lock before, by
// a foreign release or, again, by a chained one.
func (q *inquiry) chainedRelease() *Cause {
	rel, mine := q.releaseBetween()
	if q.r.Option(clockSkew) != "" {
		return nil
	}
	before := *q
	for lost := mine; lost != nil; _, lost = before.releaseBetween() {
		next := evidence.FirstOf(q.r.Holds, func(h *evidence.Hold) bool {
			return h.Key == lost.Key && h.Owner != lost.Owner && h.From > lost.From && h.From < lost.To
		})
		if next == nil {
			return nil
		}
		before.p = overlap.Between(q.r, q.v, lost, next)
		if c := before.foreignRelease(); c != nil {
			c.Sentence = evidence.Say("%s, granted it at %s, %s; before that, %s", mine, mine.GrantedAt(),
				q.wrongReleaseText(rel), c.Sentence)
			c.indirect = true
			return c
		}
	}
	return nil
}

// wrongReleaseText says that a release between the two grants succeeded after the lock had been granted to the first
// holder, and how its key was sampled then.
func (q *inquiry) wrongReleaseText(rel *history.Span) evidence.Sentence {
	a, b := q.p.A, q.p.B
	s := evidence.Say("released it at %s", evidence.CallAt(rel))
	switch {
	case rel.Outcome == history.Info:
		s.Add(", with an unknown outcome, and %s had been", a)
	case rel.Call < a.From: // whether the grant came before it is not known
		s.Add(", with a reply at %s, and %s was", evidence.ReplyAt(rel), a)
	default:
		s.Add(" after %s had been", a)
	}
	s.Add(" granted it at %s", a.GrantedAt())
	if gone := q.gone(q.p.ByA.Node, a, b.From, rel.Call); gone != nil {
		s.Add("; the key of %s was no longer there at %s", a, gone)
	}
	s.Add("; %s got %s at %s", b, b.Object("the lock"), b.GrantedAt())
	return s
}

// gone is the first sample of node until an instant, sent at sent or later, without a hold that it was sampled with
// before; nil if there is none.
func (q *inquiry) gone(node string, h *evidence.Hold, until, sent time.Duration) *history.Sample {
	held := false
	return evidence.FirstOf(q.r.Witness.During(node, h.Asked, until), func(x *history.Sample) bool {
		is := evidence.Has(x, q.v.Key, q.r.OwnerName(h.Owner))
		held = held || is
		return held && !is && x.Up && x.Sent >= sent
	})
}

// clockSkew is the option of locks that sets the clocks of clients apart (native.OptionSkew).
const clockSkew = "clock_skew"

// findClientClocks: the clocks of clients differ, and the key of the first holder was overwritten although no server
// had ended its lease, or was deleted by a client whose own key had been overwritten.
func findClientClocks(q *inquiry) *Cause {
	skew := q.r.Option(clockSkew)
	if q.p == nil || skew == "" {
		return nil
	}
	c := new(Cause)
	if rel, _ := q.releaseBetween(); rel != nil {
		c.Add("%s, which had been granted it before, %s%s", q.r.Who(rel.Process), q.wrongReleaseText(rel), q.p.Early())
	} else {
		a, b := q.p.A, q.p.B
		c.Add("%s got %s at %s, %s got %s at %s%s", a, a.Object("the lock"), a.GrantedAt(), b, b.Object("it"), b.GrantedAt(),
			q.p.Early())
	}
	c.Add("; this lock compares the end of the lease, which the key stores, with the clock of the client, and the clocks "+
		"of the clients disagree (option %s)", evidence.Quote(clockSkew+": "+skew))
	return c
}

// releaseBetween is a release between the two grants by a client that was granted
// the lock before both, and its hold; nil if there is none.
func (q *inquiry) releaseBetween() (*history.Span, *evidence.Hold) {
	for s, mine := range q.releases() {
		if mine != nil && mine.From < q.p.A.From {
			return s, mine
		}
	}
	return nil, nil
}

// findUnrecorded: an acquire succeeded while the servers had the lock for another client.
func findUnrecorded(q *inquiry) *Cause {
	if q.p == nil || q.p.Outlived() || q.p.ByA.Instead == nil && q.p.ByB.Instead == nil {
		return nil
	}
	c, p := new(Cause), q.p
	seen := (*history.Sample)(nil)
	for i, h := range []*evidence.Hold{p.A, p.B} {
		if i > 0 {
			c.Add("; ")
		}
		g := p.Grant(h)
		switch g.Instead {
		case nil:
			c.Add("%s was granted %s at %s%s", h, h.Object("the lock"), h.GrantedAt(), p.By(h))
			continue
		case seen:
			c.Add("so did %s, whose acquire succeeded at %s", h, h.GrantedAt())
		default:
			c.Add("%s, whose acquire succeeded at %s, believed that it had it; no server recorded it: %s had it for %s at %s",
				h, h.GrantedAt(), g.Instead.Node, evidence.ClientName(g.Other), g.Instead)
			c.explain(seenIn(g.Instead, 9, "%s has the key for %s", g.Instead.Node, evidence.ClientName(g.Other)))
		}
		seen = g.Instead
	}
	return c
}
