package reports

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Causes that lie with the clients: a holder that stalls or works for too long, a
// release by a client that does not hold the lock, clocks of clients.

func stallMechanism() mechanism {
	return mechanism{name: "stalled-holder", find: findStall, advice: []adviceItem{{
		Text: "No lease prevents this: a paused client cannot notice that its lease has expired, and its watchdog is " +
			"paused with it (Kleppmann 2016). A longer lease makes it rarer.",
		Cost: "after a crash, others wait for the rest of the longer lease",
	}}}
}

func cutOffMechanism() mechanism {
	return mechanism{name: "cut-off-holder", find: findCutOff, advice: []adviceItem{{
		Text: "A client that is cut off can notice: measure the validity on the client's own clock, from its last request " +
			"that was answered, and stop working when it ends.",
		Cost: "work stops although the lock may still be free; a client that is paused cannot notice",
	}}}
}

func outlivedMechanism() mechanism {
	return mechanism{name: "outlived-lease", find: findOutlived, advice: []adviceItem{{
		Text: "Renew the lock while the work lasts (a watchdog), or request a longer lease, and stop working when the " +
			"context of the hold ends.",
		Cost: "a request for each renewal; after a crash, others wait for the rest of a longer lease",
	}}}
}

func foreignReleaseMechanism() mechanism {
	return mechanism{name: "foreign-release", find: findForeignRelease, advice: []adviceItem{{
		Text: "Store a value that is unique to the hold, and delete the key only if it still has it, in one script " +
			"(compare and delete).",
		Cost: "a script instead of DEL",
	}}}
}

func clientClockMechanism() mechanism {
	return mechanism{name: "client-clocks", find: findClientClocks, advice: []adviceItem{{
		Text: "Let the server end the lease (`SET key value NX PX lease`): then clocks do not have to agree.",
		Cost: "none: it is one command instead of two",
	}}}
}

// findStall: the holder was stopped past the end of its validity.
func findStall(q *inquiry) *cause { return q.stalled(false) }

// findCutOff: the holder was cut off past the end of its validity, but could work.
func findCutOff(q *inquiry) *cause { return q.stalled(true) }

// stalled: a fault kept the holder from its work or, if cutOff, only from the servers.
func (q *inquiry) stalled(cutOff bool) *cause {
	if q.p == nil || !q.p.outlived() {
		return nil
	}
	f := q.p.faultOn(cluster.ClientName(q.p.a.Client), q.p.a.Asked)
	if f == nil || f.is(cutFaults()...) != cutOff {
		return nil
	}
	p, s := q.p, q.s
	text := fmt.Sprintf("%s, granted %s at %s, %s, past the end of %s at %s; %s was granted %s at %s%s",
		clientName(p.a.Client), p.a.it(), s.instant(p.a.granted()), q.during(f), p.r.validityName(p.a),
		s.instant(p.r.validity(p.a)), clientName(p.b.Client), p.b.it(), s.instant(p.b.granted()), p.staleClause(s))
	return &cause{text: text, faults: []*injection{f}}
}

// cutFaults keep a client from the servers, and leave it to its work.
func cutFaults() []string { return []string{"partition", "isolate", "partition-one-way", "unplug"} }

// during is what a fault did to its target and for how long: "was paused from
// 0.707 s to 2.507 s (`pause-client`)".
func (q *inquiry) during(f *injection) string {
	text := fmt.Sprintf("%s from %s", faultVerb(f.name), q.s.instant(f.took()))
	if f.heal < history.Infinity && f.healEvent >= 0 {
		text += " to " + q.s.instant(f.healed())
	}
	return text + " (" + quote(f.name) + ")"
}

// outlived reports whether the validity of the first hold had ended when the second was granted.
func (p *pair) outlived() bool { return p.validUntil > 0 && p.validUntil <= p.b.From }

// findOutlived: the holder outlived its validity, and no fault explains why.
func findOutlived(q *inquiry) *cause {
	if q.p == nil {
		return q.lateWrite()
	}
	if !q.p.outlived() {
		return nil
	}
	p, s := q.p, q.s
	c := &cause{text: fmt.Sprintf("%s, granted %s at %s, kept it until %s%s although %s had ended at %s; %s "+
		"was granted %s at %s%s", clientName(p.a.Client), p.a.it(), s.instant(p.a.granted()),
		s.instant(p.a.endPoint(p.r)), p.endingA(), p.r.validityName(p.a), s.instant(p.r.validity(p.a)),
		clientName(p.b.Client),
		p.b.it(), s.instant(p.b.granted()), p.staleClause(s))}
	c.text += q.alsoBetween(c)
	return c
}

// lateWrite: the violation is a write after the end of the writer's validity.
func (q *inquiry) lateWrite() *cause {
	h := q.r.History
	for i := len(h.Touches) - 1; i >= 0; i-- { // the last one is the one that did the damage
		t := &h.Touches[i]
		if !slices.Contains(q.v.Events, int(t.Index)) {
			continue
		}
		mine := q.r.lastHold(t.Owner, t.Key, t.Time)
		if mine == nil || mine.validUntil() == 0 || mine.validUntil() >= t.Time {
			continue
		}
		s := q.s
		wrote := eventAt(t.Index, t.Time)
		c := &cause{text: fmt.Sprintf("%s, granted %s at %s, wrote at %s, %s after the end of %s at %s",
			clientName(mine.Client), quote(q.v.Key), s.instant(mine.granted()), s.instant(wrote),
			s.elapsed(q.r.validity(mine), wrote), q.r.validityName(mine), s.instant(q.r.validity(mine)))}
		if t.Read != t.Found {
			c.text += ", over another client's write that it had not read"
		}
		if learned, _, known := q.r.describe(int(mine.Ended)); known && mine.lost() && learned < t.Time {
			// the time of the report; the hold may have ended earlier, with its validity
			c.text += "; it had learned of the loss at " + s.instant(eventAt(mine.Ended, learned))
		}
		who := clientName(mine.Client)
		c.steps = []storyStep{
			{Time: mine.From, Event: int(mine.Granted), weight: 9, Text: who + " is granted " + quote(q.v.Key)},
			{Time: mine.validUntil(), Event: -1, weight: 8, Text: q.r.endOfValidity(mine)},
		}
		if f := q.r.faultIn(cluster.ClientName(mine.Client), mine.From, t.Time); f != nil {
			c.faults = []*injection{f}
			c.text += fmt.Sprintf("; it %s", q.during(f))
		}
		return c
	}
	return nil
}

// endPoint is what ended a hold, or the last event.
func (h *hold) endPoint(r *Run) point {
	if h.Ended < 0 {
		return point{Event: r.lastEvent(), Time: r.History.End}
	}
	return h.ended()
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
func (p *pair) staleClause(s *proofs) string {
	t := p.stale
	if t == nil {
		return ""
	}
	wrote := eventAt(t.Index, t.Time)
	text := fmt.Sprintf(", and %s wrote at %s", clientName(p.a.Client), s.instant(wrote))
	if t.Token == 0 {
		text += " without a token"
		if !p.r.issuesTokens() {
			text += ": this lock issues none"
		}
		return text
	}
	text += " with " + s.token(t.Token, wrote)
	if t.MaxSeen <= t.Token {
		return text + ", before a greater one had been seen"
	}
	text += " after " + s.token(t.MaxSeen, wrote) + " had been seen"
	switch {
	case !t.Accepted:
		return text + ": the guarded resource rejected that write"
	case t.Fenced:
		return text + ": the guarded resource accepted that write although it checks tokens"
	}
	return text + ": fencing would have rejected that write"
}

// findForeignRelease: between the two grants, a client whose own hold had ended
// before released the lock, and the key of the first holder was gone after that.
func findForeignRelease(q *inquiry) *cause {
	if q.p == nil || q.p.outlived() {
		return nil
	}
	p, s, h := q.p, q.s, q.r.History
	for i := range h.Spans {
		rel := &h.Spans[i]
		if rel.Op != history.OpRelease || rel.Outcome != history.OK || rel.Key != p.a.Key || rel.Owner == p.a.Owner ||
			rel.Owner == p.b.Owner || rel.Return <= p.a.From || rel.Call >= p.b.From {
			continue
		}
		mine := q.r.lastHold(rel.Owner, rel.Key, rel.Call)
		if mine == nil || mine.validUntil() == 0 || mine.validUntil() > min(p.a.From, rel.Call) || mine.From > p.a.From {
			continue
		}
		who := clientName(mine.Client)
		c := &cause{}
		ended := s.instant(q.r.validity(mine))
		late := "after the end of " + q.r.validityName(mine) + " at " + ended
		if f := q.r.faultIn(cluster.ClientName(mine.Client), mine.From, rel.Call); f != nil {
			c.faults = []*injection{f}
			late = fmt.Sprintf("which %s, past the end of %s at %s", q.during(f), q.r.validityName(mine), ended)
		}
		c.text = fmt.Sprintf("%s, %s, %s", who, late, q.releasedAnothers(rel))
		return c
	}
	for _, find := range []func() *cause{q.chainedRelease, q.lateRelease, q.strangersRelease} {
		if c := find(); c != nil {
			return c
		}
	}
	return nil
}

// chainedRelease: the key of the first holder was deleted by the release of a
// client that had lost the lock to it, which again was the work of a client that
// was paused, or cut off, past its validity.
func (q *inquiry) chainedRelease() *cause {
	p, s := q.p, q.s
	rel := q.releaseBetween()
	if rel == nil || rel.Call < p.a.From {
		return nil
	}
	mine := q.r.lastHold(rel.Owner, rel.Key, rel.Call)
	if mine.validUntil() <= p.a.From || q.r.option(clockSkew) != "" {
		return nil
	}
	for i := range q.r.faults {
		f := &q.r.faults[i]
		if !isClient(f.target) || !f.is(append(cutFaults(), "pause-client")...) || !f.effective(0, mine.From) {
			continue
		}
		return &cause{indirect: true, faults: []*injection{f}, text: fmt.Sprintf("%s, granted it at %s, %s; before that, "+
			"%s %s", clientName(mine.Client), s.instant(mine.granted()), q.releasedAnothers(rel), subject(f.target),
			q.during(f))}
	}
	return nil
}

// releasedAnothers says that a release between the two grants succeeded after the
// lock had been granted to the first holder, and what was seen of its key then.
func (q *inquiry) releasedAnothers(rel *history.Span) string {
	p, s := q.p, q.s
	text, first := "released it at "+s.instant(eventAt(rel.Invoked, rel.Call)), clientName(p.a.Client)
	if rel.Call < p.a.From { // whether the grant came before it is not known
		text += fmt.Sprintf(", with a reply at %s, and %s was", s.instant(eventAt(rel.Ended, rel.Return)), first)
	} else {
		text += fmt.Sprintf(" after %s had been", first)
	}
	text += fmt.Sprintf(" granted it at %s", s.instant(p.a.granted()))
	if gone := q.goneAfter(rel.Call); gone != nil {
		text += fmt.Sprintf("; the key of %s was no longer there at %s", clientName(p.a.Client), s.instant(sampleAt(gone)))
	}
	return text + fmt.Sprintf("; %s was granted it at %s", clientName(p.b.Client), s.instant(p.b.granted()))
}

// goneAfter is the first sample after t and before the second grant in which the
// node that granted the first hold no longer has it; nil if there is none.
func (q *inquiry) goneAfter(t time.Duration) *history.Sample {
	p, held := q.p, false
	samples := q.r.witness.during(p.granterA, p.a.Asked, p.b.From)
	for i := range samples {
		x := &samples[i]
		switch is := has(x, p.key, q.r.ownerName(p.a.Owner)); {
		case is:
			held = true
		case held && x.Up && x.Sent >= t:
			return x
		}
	}
	return nil
}

// lastHold is the last hold of an owner that was granted before t; nil if there is none.
func (r *Run) lastHold(owner, key int32, t time.Duration) *hold {
	var last *hold
	for i := range r.holds {
		if h := &r.holds[i]; h.Owner == owner && h.Key == key && h.From <= t {
			last = h
		}
	}
	return last
}

// faultIn is the last fault on target that was in force in [from, to]; nil if there is none.
func (r *Run) faultIn(target string, from, to time.Duration) *injection {
	var last *injection
	for i := range r.faults {
		if f := &r.faults[i]; f.on(target) && f.effective(from, to) {
			last = f
		}
	}
	return last
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
	p, s := q.p, q.s
	text := ""
	if rel := q.releaseBetween(); rel != nil {
		who := clientName(rel.Process.Client(q.r.History.Clients))
		text = fmt.Sprintf("%s, which had been granted it before, %s%s", who, q.releasedAnothers(rel), q.early())
	} else {
		text = fmt.Sprintf("%s was granted it at %s, %s at %s%s", clientName(p.a.Client), s.instant(p.a.granted()),
			clientName(p.b.Client), s.instant(p.b.granted()), q.early())
	}
	return &cause{text: fmt.Sprintf("%s; this lock compares the end of the lease, which the key stores, with the clock "+
		"of the client, and the clocks of the clients disagree (option %s)", text, quote(clockSkew+": "+skew))}
}

// releaseBetween is a release between the two grants by a client that was granted
// the lock before both; nil if there is none.
func (q *inquiry) releaseBetween() *history.Span {
	p := q.p
	for i := range q.r.History.Spans {
		s := &q.r.History.Spans[i]
		if s.Op == history.OpRelease && s.Outcome == history.OK && s.Key == p.a.Key && s.Owner != p.a.Owner &&
			s.Owner != p.b.Owner && s.Return > p.a.From && s.Call < p.b.From {
			if mine := q.r.lastHold(s.Owner, s.Key, s.Call); mine != nil && mine.From < p.a.From {
				return s
			}
		}
	}
	return nil
}

// early is how long before the end of the first validity the second grant came.
func (q *inquiry) early() string {
	p := q.p
	if p.validUntil <= p.b.From {
		return ""
	}
	what := "the validity of " + clientName(p.a.Client)
	if q.r.validityName(p.a) != "its validity" {
		what = "the requested lease of " + clientName(p.a.Client)
	}
	return fmt.Sprintf(", %s before %s ended", q.s.elapsed(p.b.granted(), q.r.validity(p.a)), what)
}
