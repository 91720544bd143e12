package reports

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Causes that lie with locks whose operations are several commands, or whose replies hide what the server
// found.

func takenOverTwiceMechanism() mechanism {
	return mechanism{name: "taken-over-twice", find: findTakenOverTwice, advice: []adviceItem{{
		Text: "Acquire with one command that sets the key only if it is absent and lets the server end the lease " +
			"(`SET key value NX PX lease`), so that two clients cannot both read an expired value.",
		Cost: "none: it is one command instead of several",
	}}}
}

func confirmedLossMechanism() mechanism {
	return mechanism{name: "loss-confirmed", find: findConfirmedLoss, advice: []adviceItem{{
		Text: "A release must report success only if it found the hold, or a record that the same release was executed " +
			"before. If the key is gone, the hold was lost.",
		Cost: "a record of each release, kept for as long as a release may be sent again",
	}}}
}

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
				c.text += q.inFlight(before, joint) + q.delays(c) + ": " + q.twoGrants(node)
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
	f := q.r.faultIn(cluster.ClientName(dead.Client), dead.From, q.p.a.From)
	if f == nil || !f.is("client-crash", "client-restart") {
		return nil, ""
	}
	s := q.s
	ended := func() string { return "lease ended at " + s.instant(q.r.validity(dead)) }
	if dead.validUntil() > q.p.a.From {
		if dead.End != checker.ReleaseUnknown {
			return nil, ""
		}
		ended = func() string { return "release, sent at " + s.instant(dead.ended()) + ", has no reply" }
	}
	return &cause{faults: []*injection{f}, text: fmt.Sprintf("%s was killed at %s (%s), and its %s",
		clientName(dead.Client), s.instant(f.took()), quote(f.name), ended())}, ", while"
}

// freed: the hold was released while the acquires of both holds were in flight, or its lease ended, also if that was
// before they were sent: an expired value stays until a client replaces it.
func (q *inquiry) freed(before *hold) (c *cause, joint string) {
	p, s := q.p, q.s
	who, end := clientName(before.Client), before.validUntil()
	asked := max(p.a.Asked, p.b.Asked)
	if before.End == checker.Released {
		if rel := q.r.releaseOf(before); rel.Call > p.a.From || rel.Return < asked {
			return nil, ""
		}
		return &cause{text: fmt.Sprintf("%s released it at %s", who, s.instant(before.ended())),
			steps: []storyStep{q.step(int(before.Ended))}}, " while"
	}
	if end == 0 || end > p.a.From || before.From >= p.a.From {
		return nil, ""
	}
	joint = " while"
	if end < asked {
		joint = " and then"
	}
	return &cause{text: fmt.Sprintf("the lease of %s ended at %s", who, s.instant(q.r.validity(before)))}, joint
}

// delays names the faults that delayed requests or replies between the two grants, if c has no fault yet.
func (q *inquiry) delays(c *cause) (text string) {
	if len(c.faults) > 0 {
		return ""
	}
	for _, f := range q.r.effectiveFaults(q.p.a.Asked, q.p.b.From, delayFaults()...) {
		c.faults = append(c.faults, f)
		text += fmt.Sprintf(" (%s from %s)", quote(f.name), q.s.instant(f.took()))
	}
	return text
}

// inFlight says which acquires were in flight when a hold ended, joined to the text about that end: after a release,
// its own client may have asked again.
func (q *inquiry) inFlight(before *hold, joint string) string {
	a, b := q.p.a, q.p.b
	if before.Client == b.Client {
		a, b = b, a
	}
	if before.Client == a.Client && before.End == checker.Released && a.Asked > before.to {
		return fmt.Sprintf(" and asked for it again at %s, while the acquire of %s was in flight",
			q.s.instant(eventAt(q.r.History.Spans[a.Span].Invoked, a.Asked)), clientName(b.Client))
	}
	return joint + " the acquires of both were in flight"
}

// releaseOf is the release that ended a hold, which was released.
func (r *Run) releaseOf(h *hold) *history.Span {
	i := slices.IndexFunc(r.History.Spans, func(s history.Span) bool { return s.Invoked == h.Ended })
	return &r.History.Spans[i]
}

// lateRelease: a release that was sent while its hold was valid was kept in flight until the lock had been granted to
// the first holder, and succeeded all the same.
func (q *inquiry) lateRelease() *cause {
	rel := q.releaseBetween()
	if rel == nil || q.r.option(clockSkew) != "" {
		return nil
	}
	mine := q.r.lastHold(rel.Owner, rel.Key, rel.Call)
	if mine.validUntil() == 0 || mine.validUntil() <= rel.Call || mine.validUntil() > q.p.a.From {
		return nil
	}
	f := q.r.faultIn(cluster.ClientName(mine.Client), rel.Call, rel.Return)
	if f == nil {
		return nil
	}
	return &cause{faults: []*injection{f}, text: fmt.Sprintf("%s, which %s, past the end of %s at %s, %s",
		clientName(mine.Client), q.during(f), q.r.validityName(mine), q.s.instant(q.r.validity(mine)),
		q.releasedAnothers(rel))}
}

// findConfirmedLoss: a key was removed while it was held, and the release of that hold succeeded.
func findConfirmedLoss(q *inquiry) *cause {
	if q.p != nil || q.property != checker.Honesty {
		return nil
	}
	h := q.r.History
	at := slices.IndexFunc(h.Spans, func(x history.Span) bool {
		return x.Op == history.OpRelease && x.Outcome == history.OK && q.r.keyName(x.Key) == q.v.Key &&
			slices.Contains(q.v.Events, int(x.Ended))
	})
	if at < 0 {
		return nil
	}
	rel := &h.Spans[at]
	mine := q.r.lastHold(rel.Owner, rel.Key, rel.Call)
	if mine == nil {
		return nil
	}
	for _, n := range q.r.Manifest.Nodes {
		f, how := q.lostKey(n.Name, mine, rel)
		if f == nil {
			continue
		}
		s := q.s
		c := &cause{faults: []*injection{f}}
		if f.behind() != "" {
			c.steps = append(c.steps, storyStep{Time: f.heal, Event: int(f.healEvent), weight: 9, Text: f.healedText()})
		}
		c.text = fmt.Sprintf("%s, granted %s at %s, released it at %s without an error, although the key %s (%s)",
			clientName(mine.Client), quote(q.v.Key), s.instant(mine.granted()), s.instant(eventAt(rel.Ended, rel.Return)),
			how, quote(f.name))
		return c
	}
	if mine.End == checker.Released && mine.to < rel.Call {
		s := q.s
		return &cause{text: fmt.Sprintf("%s released %s at %s without an error, although it had already released it at %s: "+
			"the release does not find out whether its owner holds the lock", clientName(mine.Client), quote(q.v.Key),
			s.instant(eventAt(rel.Invoked, rel.Call)), s.instant(mine.ended()))}
	}
	return nil
}

// lostKey is the fault by which node lost the key of a hold before its release was sent, and how; nil if there is
// none.
func (q *inquiry) lostKey(node string, mine *hold, rel *history.Span) (f *injection, how string) {
	s := q.s
	if f := q.r.effectOn(node, mine.Asked, rel.Call, removalFaults()...); f != nil {
		return f, fmt.Sprintf("had been %s on %s at %s", removals()[f.name], node, s.instant(f.took()))
	}
	if f := q.r.clockAhead(node, mine.Asked, mine.From, rel.Call); f != nil && q.missingAt(node, mine, rel.Call) {
		return f, "had expired early on " + q.clockText(f)
	}
	if f := q.r.effectOn(node, mine.Asked, rel.Call, restartFaults()...); f != nil && q.missingAt(node, mine, rel.Call) {
		return f, fmt.Sprintf("was lost when %s %s at %s", node, faultVerb(f.name), s.instant(f.took()))
	}
	return nil, ""
}

// missingAt reports whether node was sampled with the key of a hold, and later, before t, without it.
func (q *inquiry) missingAt(node string, h *hold, t time.Duration) bool {
	seen := false
	for _, x := range q.r.witness.during(node, h.Asked, t) {
		is := has(&x, q.v.Key, q.r.ownerName(h.Owner))
		if seen && x.Up && !is {
			return true
		}
		seen = seen || is
	}
	return false
}
