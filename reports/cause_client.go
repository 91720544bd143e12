package reports

import (
	"cmp"
	"fmt"
	"iter"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Causes that lie with the clients: a holder that stalls or works for too long, a
// release by a client that does not hold the lock, clocks of clients.

// findStall: the holder was stopped past the end of its validity.
func findStall(q *inquiry) *cause { return q.stalled(false) }

// findCutOff: the holder was cut off past the end of its validity, but could work.
func findCutOff(q *inquiry) *cause { return q.stalled(true) }

// stalled: a fault kept the holder from its work or, if cutOff, only from the servers.
func (q *inquiry) stalled(cutOff bool) *cause {
	if q.p == nil || !q.p.outlived() {
		return nil
	}
	f := q.p.faultOn(cluster.ClientName(q.p.a.Client), q.p.a.Asked, nil)
	if f == nil || f.cutsOff() != cutOff {
		return nil
	}
	p := q.p
	return blame(f, "%s, granted %s at %s, %s, past the end of %s at %s; %s was granted %s at %s%s", p.a,
		p.a.it(), p.a.granted(), f.during(), p.r.validityName(p.a), p.r.validity(p.a), p.b, p.b.it(), p.b.granted(),
		p.staleClause())
}

// findOutlived: the holder outlived its validity, and no fault explains why.
func findOutlived(q *inquiry) *cause {
	if q.p == nil {
		return q.lateWrite()
	}
	if !q.p.outlived() {
		return nil
	}
	p := q.p
	c := because("%s, granted %s at %s, kept it until %s%s although %s had ended at %s; %s was granted %s at %s%s", p.a,
		p.a.it(), p.a.granted(), p.a.endPoint(p.r), p.endingA(), p.r.validityName(p.a), p.r.validity(p.a), p.b, p.b.it(),
		p.b.granted(), p.staleClause())
	if f := q.between(); f != nil {
		c.blame(f, "; %s", f.tookEffect())
	}
	return c
}

// lateWrite: the violation is a write after the end of the writer's validity.
func (q *inquiry) lateWrite() *cause {
	var mine *hold
	t := lastOf(q.r.History.Touches, func(t *history.Touched) bool { // the last one is the one that did the damage
		if !q.cites(t.Index) {
			return false
		}
		mine = q.r.lastHold(t.Owner, t.Key, t.Time)
		return mine != nil && mine.validUntil() != 0 && mine.validUntil() < t.Time
	})
	if t == nil {
		return nil
	}
	wrote, ended := eventAt(t.Index, t.Time), q.r.validity(mine)
	c := because("%s, granted %s at %s, wrote at %s, %s after the end of %s at %s", mine, quote(q.v.Key), mine.granted(),
		wrote, elapsed(ended, wrote), q.r.validityName(mine), ended)
	if t.Read != t.Found {
		c.add(", over another client's write that it had not read")
	}
	if learned, _, known := q.r.describe(int(mine.Ended)); known && mine.lost() && learned < t.Time {
		// the time of the report; the hold may have ended earlier, with its validity
		c.add("; it had learned of the loss at %s", eventAt(mine.Ended, learned))
	}
	c.explain(
		storyStep{Time: mine.From, Event: int(mine.Granted), weight: 9,
			Text: fmt.Sprintf("%s is granted %s", mine, quote(q.v.Key))},
		storyStep{Time: mine.validUntil(), Event: -1, weight: 8, Text: q.r.endOfValidity(mine)})
	if f := q.r.faultIn(mine, mine.From, t.Time); f != nil {
		c.blame(f, "; it %s", f.during())
	}
	return c
}

// endingA says how the first hold ended, where that explains something.
func (p *pair) endingA() string {
	switch {
	case p.a.lost():
		return ", when it learned of the loss,"
	case p.a.End == checker.Crashed:
		return ", when it crashed,"
	}
	return ""
}

// staleClause describes the late write, if any, and what fencing did or would have done.
func (p *pair) staleClause() sentence {
	t := p.stale
	if t == nil {
		return sentence{}
	}
	wrote := eventAt(t.Index, t.Time)
	s := say(", and %s wrote at %s", p.a, wrote)
	switch {
	case t.Token == 0 && p.r.issuesTokens():
		s.add(" without a token")
		return s
	case t.Token == 0:
		s.add(" without a token: this lock issues none")
		return s
	case t.MaxSeen <= t.Token:
		s.add(" with %s, before a greater one had been seen", token(t.Token, wrote))
		return s
	}
	s.add(" with %s after %s had been seen: ", token(t.Token, wrote), token(t.MaxSeen, wrote))
	switch {
	case !t.Accepted:
		s.add("the guarded resource rejected that write")
	case t.Fenced:
		s.add("the guarded resource accepted that write although it checks tokens")
	default:
		s.add("fencing would have rejected that write")
	}
	return s
}

// findForeignRelease: between the two grants, a client whose own hold had ended
// before released the lock, and the key of the first holder was gone after that.
func findForeignRelease(q *inquiry) *cause {
	if q.p == nil || q.p.outlived() {
		return nil
	}
	for rel, mine := range q.releases() {
		if mine == nil || mine.validUntil() == 0 || mine.validUntil() > min(q.p.a.From, rel.Call) ||
			mine.From > q.p.a.From {
			continue
		}
		ended, validity := q.r.validity(mine), q.r.validityName(mine)
		if f := q.r.faultIn(mine, mine.From, rel.Call); f != nil {
			return blame(f, "%[2]s, which %[3]s, past the end of %[4]s at %[1]s, %[5]s", ended, mine, f.during(),
				validity, q.releasedAnothers(rel))
		}
		return because("%s, after the end of %s at %s, %s", mine, validity, ended, q.releasedAnothers(rel))
	}
	return cmp.Or(q.chainedRelease(), q.lateRelease(), q.strangersRelease())
}

// releases are the releases between the two grants that succeeded for another owner, each with that owner's last hold;
// nil: it had none.
func (q *inquiry) releases() iter.Seq2[*history.Span, *hold] {
	a, b := q.p.a, q.p.b
	return func(yield func(*history.Span, *hold) bool) {
		for s := range each(q.r.History.Spans) {
			if s.Op == history.OpRelease && s.Outcome == history.OK && s.Key == a.Key && s.Owner != a.Owner &&
				s.Owner != b.Owner && s.Return > a.From && s.Call < b.From && !yield(s, q.r.lastHold(s.Owner, s.Key, s.Call)) {
				return
			}
		}
	}
}

// chainedRelease: the key of the first holder was deleted by the release of a
// client that had lost the lock to it, which again was the work of a client that
// was paused, or cut off, past its validity.
func (q *inquiry) chainedRelease() *cause {
	rel, mine := q.releaseBetween()
	if rel == nil || rel.Call < q.p.a.From || mine.validUntil() <= q.p.a.From || q.r.option(clockSkew) != "" {
		return nil
	}
	f := firstOf(q.r.faults, func(f *injection) bool {
		return isClient(f.target) && (f.cutsOff() || f.class == history.FaultPauses) && f.effective(0, mine.From)
	})
	if f == nil {
		return nil
	}
	c := blame(f, "%s, granted it at %s, %s; before that, %s %s", mine, mine.granted(),
		q.releasedAnothers(rel), subject(f.target), f.during())
	c.indirect = true
	return c
}

// releasedAnothers says that a release between the two grants succeeded after the
// lock had been granted to the first holder, and what was seen of its key then.
func (q *inquiry) releasedAnothers(rel *history.Span) sentence {
	a, b := q.p.a, q.p.b
	s := say("released it at %s", callAt(rel))
	if rel.Call < a.From { // whether the grant came before it is not known
		s.add(", with a reply at %s, and %s was", replyAt(rel), a)
	} else {
		s.add(" after %s had been", a)
	}
	s.add(" granted it at %s", a.granted())
	if gone := q.gone(q.p.granterA, a, b.From, rel.Call); gone != nil {
		s.add("; the key of %s was no longer there at %s", a, gone)
	}
	s.add("; %s was granted it at %s", b, b.granted())
	return s
}

// gone is the first sample of node until an instant, sent at sent or later, without a hold that it was sampled with
// before; nil if there is none.
func (q *inquiry) gone(node string, h *hold, until, sent time.Duration) *history.Sample {
	held := false
	return firstOf(q.r.witness.during(node, h.Asked, until), func(x *history.Sample) bool {
		is := has(x, q.v.Key, q.r.ownerName(h.Owner))
		held = held || is
		return held && !is && x.Up && x.Sent >= sent
	})
}

// clockSkew is the option of historic locks that sets the clocks of clients apart.
const clockSkew = "clock_skew"

// findClientClocks: the clocks of clients differ, and the key of the first holder
// was overwritten although no server had ended its lease, or was deleted by a
// client whose own key had been overwritten.
func findClientClocks(q *inquiry) *cause {
	skew := q.r.option(clockSkew)
	if q.p == nil || skew == "" {
		return nil
	}
	c := new(cause)
	if rel, _ := q.releaseBetween(); rel != nil {
		c.add("%s, which had been granted it before, %s%s", q.r.who(rel.Process), q.releasedAnothers(rel), q.early())
	} else {
		a, b := q.p.a, q.p.b
		c.add("%s was granted it at %s, %s at %s%s", a, a.granted(), b, b.granted(), q.early())
	}
	c.add("; this lock compares the end of the lease, which the key stores, with the clock of the client, and the clocks "+
		"of the clients disagree (option %s)", quote(clockSkew+": "+skew))
	return c
}

// releaseBetween is a release between the two grants by a client that was granted
// the lock before both, and its hold; nil if there is none.
func (q *inquiry) releaseBetween() (*history.Span, *hold) {
	for s, mine := range q.releases() {
		if mine != nil && mine.From < q.p.a.From {
			return s, mine
		}
	}
	return nil, nil
}

// early is how long before the end of the first validity the second grant came.
func (q *inquiry) early() sentence {
	p := q.p
	if p.validUntil <= p.b.From {
		return sentence{}
	}
	what := "validity"
	if p.r.validityName(p.a) != "its validity" {
		what = "requested lease"
	}
	return say(", %s before the %s of %s ended", elapsed(p.b.granted(), p.r.validity(p.a)), what, p.a)
}
