package cause

import (
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Causes that lie with operations of several commands or executed twice, and replies that hide the server's state.

// findTakenOverTwice: a hold ended while two acquires were in flight, and both were granted.
func findTakenOverTwice(q *inquiry) *Cause {
	if !q.oneNode() || q.r.ByMajority() || q.p.B.Asked >= q.p.A.From {
		return nil
	}
	// a death first: scenarios inject it
	for _, freed := range []func(*evidence.Hold) (*Cause, string){q.freedByDeath, q.freed} {
		for i := len(q.r.Holds) - 1; i >= 0; i-- {
			before := &q.r.Holds[i]
			if before.Key != q.p.A.Key || before == q.p.A || before == q.p.B {
				continue
			}
			if c, joint := freed(before); c != nil {
				c.Add("%s", q.inFlight(before, joint))
				q.delays(c)
				c.Add(": %s", q.twoGrants(q.node()))
				c.unsure = q.node() == ""
				return c
			}
		}
	}
	return nil
}

// freedByDeath: the client of the hold was killed, and its lease ended before the first grant. Also if it was killed
// while its release was in flight.
func (q *inquiry) freedByDeath(dead *evidence.Hold) (c *Cause, joint string) {
	died := dead.End == checker.Crashed || dead.End == checker.ReleaseUnknown
	if !died || dead.ValidUntil() == 0 || dead.From >= q.p.A.From {
		return nil, ""
	}
	f := q.r.FaultIn(dead, dead.From, q.p.A.From)
	if f == nil || !f.EndsProcess() {
		return nil, ""
	}
	end := evidence.Say("lease ended at %s", q.r.Validity(dead))
	if dead.ValidUntil() > q.p.A.From {
		if dead.End != checker.ReleaseUnknown {
			return nil, ""
		}
		end = evidence.Say("release, sent at %s, has no reply", dead.EndedAt())
	}
	return blame(f, "%s was killed at %s (%s), and its %s", dead, f.Took(), f, end), ", while"
}

// freed: the hold was released while the acquires of both holds were in flight, or only the other client's if one of
// them is its own client's next; or its lease ended, also if that was before they were sent: an expired value stays
// until a client replaces it.
func (q *inquiry) freed(before *evidence.Hold) (c *Cause, joint string) {
	a, end := q.p.A, before.ValidUntil()
	asked := q.p.OthersAsked(before.Client)
	if before.End == checker.Released {
		if rel := q.r.ReleaseOf(before); rel.Call > a.From || rel.Return < asked {
			return nil, ""
		}
		return because("%s released it at %s", before, before.EndedAt()).explain(q.r.StepAt(int(before.Ended))), " while"
	}
	over := before.To >= end || before.End == checker.Crashed || before.End == checker.ReleaseUnknown
	if end == 0 || end > a.From || before.From >= a.From || !over {
		return nil, ""
	}
	joint = map[bool]string{false: " while", true: " and then"}[end < asked]
	return because("the lease of %s ended at %s", before, q.r.Validity(before)), joint
}

// delays names the faults that delayed requests or replies between the two grants, if c has no fault yet.
func (q *inquiry) delays(c *Cause) {
	if len(c.Faults) > 0 {
		return
	}
	for _, f := range q.r.EffectiveFaults(q.p.A.Asked, q.p.B.From, (*evidence.Fault).DelaysReplies) {
		c.blame(f, " (%s from %s)", f, f.Took())
	}
}

// inFlight says which acquires were in flight when a hold ended, joined to the text about that end: after a release,
// its own client may have asked again.
func (q *inquiry) inFlight(before *evidence.Hold, joint string) evidence.Sentence {
	a, b := q.p.A, q.p.B
	if before.Client == b.Client {
		a, b = b, a
	}
	if before.Client == a.Client && before.End == checker.Released && a.Asked > before.To {
		return evidence.Say(" and asked for it again at %s, while the acquire of %s was in flight",
			evidence.EventAt(q.r.History.Spans[a.Span].Invoked, a.Asked), b)
	}
	return evidence.Say("%s the acquires of both were in flight", joint)
}

// findConfirmedLoss: a key was removed while it was held, and the release of that hold succeeded.
func findConfirmedLoss(q *inquiry) *Cause {
	if q.p != nil || q.property != checker.Honesty {
		return nil
	}
	rel := evidence.FirstOf(q.r.History.Spans, func(x *history.Span) bool {
		return x.Op == history.OpRelease && x.Outcome == history.OK && q.about(x.Key) && q.cites(x.Ended)
	})
	if rel == nil {
		return nil
	}
	mine := q.r.LastHold(rel.Owner, rel.Key, rel.Call)
	if mine == nil {
		return nil
	}
	for _, n := range q.r.Manifest.Nodes {
		f, how := q.lostKey(n.Name, mine, rel)
		if f == nil {
			continue
		}
		c := new(Cause)
		if f.Behind() != "" {
			c.explain(evidence.Step{Time: f.Heal, Event: int(f.HealEvent), Weight: 9, Text: f.HealedText()})
		}
		return c.blame(f, "%[2]s, granted %[3]s at %[4]s, released it at %[5]s without an error, although the key %[1]s "+
			"(%[6]s)", how, mine, evidence.Quote(q.v.Key), mine.GrantedAt(), evidence.ReplyAt(rel), f)
	}
	if _, _, other := q.wrongRelease(); other != nil {
		if kept := q.stillKept(other, rel); kept != nil {
			return q.releasedPast(rel, mine, other).addKept(kept, other)
		}
	}
	if mine.End == checker.Released && mine.To < rel.Call {
		return because("%s released %s at %s without an error, although it had already released it at %s: the release does "+
			"not find out whether its owner holds the lock", mine, evidence.Quote(q.v.Key), evidence.CallAt(rel), mine.EndedAt())
	}
	return nil
}

// lostKey is the fault by which node lost the key of a hold before its release was sent, and how; nil if there is
// none.
func (q *inquiry) lostKey(node string, mine *evidence.Hold, rel *history.Span) (f *evidence.Fault,
	how evidence.Sentence) {
	if f := q.r.EffectOn(node, mine.Asked, rel.Call, (*evidence.Fault).RemovesKeys); f != nil {
		return f, evidence.Say("had been removed from %s at %s", node, f.Took())
	}
	if q.gone(node, mine, rel.Call, 0) == nil {
		return nil, how
	}
	if f := q.r.ClockAhead(node, mine.Asked, mine.From, rel.Call); f != nil {
		return f, evidence.Say("had expired early on %s", f.ClockText())
	}
	if f := q.r.EffectOn(node, mine.Asked, rel.Call, (*evidence.Fault).EndsProcess); f != nil {
		return f, evidence.Say("was lost when %s %s at %s", node, f.Predicate(1), f.Took())
	}
	return nil, how
}

// addKept adds that a node kept the lock for another client after a release that reported success.
func (c *Cause) addKept(kept *history.Sample, other *evidence.Hold) *Cause {
	c.Add(", and %s kept it for that client: it still had its key at %s", kept.Node, kept)
	return c.explain(seenIn(kept, 8, "%s still has the key of %s", kept.Node, other))
}

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
