package reports

import (
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// Causes that lie with locks whose operations are several commands, or whose replies hide what the server
// found.

// findTakenOverTwice: a hold ended while two acquires were in flight, and one node granted both.
func findTakenOverTwice(q *inquiry) *cause {
	node := q.node()
	if node == "" || q.r.byMajority() || q.p.b.Asked >= q.p.a.From {
		return nil
	}
	// a death first: it is what a scenario injects
	for _, freed := range []func(*hold) (*cause, string){q.freedByDeath, q.freed} {
		for i := len(q.r.holds) - 1; i >= 0; i-- {
			before := &q.r.holds[i]
			if before.Key != q.p.a.Key || before == q.p.a || before == q.p.b {
				continue
			}
			if c, joint := freed(before); c != nil {
				c.add("%s", q.inFlight(before, joint))
				q.delays(c)
				c.add(": %s", q.twoGrants(node))
				return c
			}
		}
	}
	return nil
}

// freedByDeath: the client of the hold was killed, and its lease ended before the first grant. Also if it was killed
// while its release was in flight.
func (q *inquiry) freedByDeath(dead *hold) (c *cause, joint string) {
	died := dead.End == checker.Crashed || dead.End == checker.ReleaseUnknown
	if !died || dead.validUntil() == 0 || dead.From >= q.p.a.From {
		return nil, ""
	}
	f := q.r.faultIn(dead, dead.From, q.p.a.From)
	if f == nil || !f.endsProcess() {
		return nil, ""
	}
	end := say("lease ended at %s", q.r.validity(dead))
	if dead.validUntil() > q.p.a.From {
		if dead.End != checker.ReleaseUnknown {
			return nil, ""
		}
		end = say("release, sent at %s, has no reply", dead.ended())
	}
	return blame(f, "%s was killed at %s (%s), and its %s", dead, f.took(), f, end), ", while"
}

// freed: the hold was released while the acquires of both holds were in flight, or its lease ended, also if that was
// before they were sent: an expired value stays until a client replaces it.
func (q *inquiry) freed(before *hold) (c *cause, joint string) {
	a, end := q.p.a, before.validUntil()
	asked := max(a.Asked, q.p.b.Asked)
	if before.End == checker.Released {
		if rel := q.r.releaseOf(before); rel.Call > a.From || rel.Return < asked {
			return nil, ""
		}
		return because("%s released it at %s", before, before.ended()).explain(q.step(int(before.Ended))), " while"
	}
	if end == 0 || end > a.From || before.From >= a.From {
		return nil, ""
	}
	joint = " while"
	if end < asked {
		joint = " and then"
	}
	return because("the lease of %s ended at %s", before, q.r.validity(before)), joint
}

// delays names the faults that delayed requests or replies between the two grants, if c has no fault yet.
func (q *inquiry) delays(c *cause) {
	if len(c.faults) > 0 {
		return
	}
	for _, f := range q.r.effectiveFaults(q.p.a.Asked, q.p.b.From, (*injection).delaysReplies) {
		c.blame(f, " (%s from %s)", f, f.took())
	}
}

// inFlight says which acquires were in flight when a hold ended, joined to the text about that end: after a release,
// its own client may have asked again.
func (q *inquiry) inFlight(before *hold, joint string) sentence {
	a, b := q.p.a, q.p.b
	if before.Client == b.Client {
		a, b = b, a
	}
	if before.Client == a.Client && before.End == checker.Released && a.Asked > before.to {
		return say(" and asked for it again at %s, while the acquire of %s was in flight",
			eventAt(q.r.History.Spans[a.Span].Invoked, a.Asked), b)
	}
	return say("%s the acquires of both were in flight", joint)
}

// lateRelease: a release that was sent while its hold was valid was kept in flight until the lock had been granted to
// the first holder, and succeeded all the same.
func (q *inquiry) lateRelease() *cause {
	rel, mine := q.releaseBetween()
	if rel == nil || q.r.option(clockSkew) != "" || mine.validUntil() == 0 || mine.validUntil() <= rel.Call ||
		mine.validUntil() > q.p.a.From {
		return nil
	}
	f := q.r.faultIn(mine, rel.Call, rel.Return)
	if f == nil {
		return nil
	}
	return blame(f, "%s, which %s, past the end of %s at %s, %s", mine, f.during(), q.r.validityName(mine),
		q.r.validity(mine), q.releasedAnothers(rel))
}

// findConfirmedLoss: a key was removed while it was held, and the release of that hold succeeded.
func findConfirmedLoss(q *inquiry) *cause {
	if q.p != nil || q.property != checker.Honesty {
		return nil
	}
	rel := firstOf(q.r.History.Spans, func(x *history.Span) bool {
		return x.Op == history.OpRelease && x.Outcome == history.OK && q.about(x.Key) && q.cites(x.Ended)
	})
	if rel == nil {
		return nil
	}
	mine := q.r.lastHold(rel.Owner, rel.Key, rel.Call)
	if mine == nil {
		return nil
	}
	for _, n := range q.r.Manifest.Nodes {
		f, how := q.lostKey(n.Name, mine, rel)
		if f == nil {
			continue
		}
		c := new(cause)
		if f.behind() != "" {
			c.explain(storyStep{Time: f.heal, Event: int(f.healEvent), weight: 9, Text: f.healedText()})
		}
		return c.blame(f, "%[2]s, granted %[3]s at %[4]s, released it at %[5]s without an error, although the key %[1]s "+
			"(%[6]s)", how, mine, quote(q.v.Key), mine.granted(), replyAt(rel), f)
	}
	if mine.End == checker.Released && mine.to < rel.Call {
		return because("%s released %s at %s without an error, although it had already released it at %s: the release does "+
			"not find out whether its owner holds the lock", mine, quote(q.v.Key), callAt(rel), mine.ended())
	}
	return nil
}

// lostKey is the fault by which node lost the key of a hold before its release was sent, and how; nil if there is
// none.
func (q *inquiry) lostKey(node string, mine *hold, rel *history.Span) (f *injection, how sentence) {
	if f := q.r.effectOn(node, mine.Asked, rel.Call, (*injection).removesKeys); f != nil {
		return f, say("had been removed from %s at %s", node, f.took())
	}
	if q.gone(node, mine, rel.Call, 0) == nil {
		return nil, how
	}
	if f := q.r.clockAhead(node, mine.Asked, mine.From, rel.Call); f != nil {
		return f, say("had expired early on %s", f.clockText())
	}
	if f := q.r.effectOn(node, mine.Asked, rel.Call, (*injection).endsProcess); f != nil {
		return f, say("was lost when %s %s at %s", node, f.predicate(1), f.took())
	}
	return nil, how
}
