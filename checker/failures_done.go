package checker

import (
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeDone finds the releases that ended with an error and with certainty had no effect, but after which another owner
// was granted the lock before the promise to the releaser had ended: they had it. What may have changed the data of the
// servers since the grant excuses the lock, as does a forced release.
func (c *honestyCheck) judgeDone() {
	dis := c.disturbances(c.o)
	for _, f := range c.h.Failures {
		s := &c.h.Spans[f.Span]
		if s.Op != history.OpRelease || s.Outcome != history.Fail || s.Held || c.h.Limit(s.Key) != 0 {
			continue
		}
		n, held := c.lastHold(s.Owner, s.Key, s.Call)
		if !held {
			continue
		}
		h := &c.holds[n]
		if h.endEvent != s.Invoked && h.endEvent != s.Ended || len(c.levelsLeft(h)) != 1 {
			continue
		}
		other := c.grantedWithin(h, segment{s.Call, h.lastPromise() - c.o.ClockError})
		if other == none {
			continue
		}
		during := segment{h.asked, c.holds[other].from}
		if c.o.applies(honestData) && dis.touch(during, anyClient, history.AffectsData) ||
			c.releasedIn(s, during) {
			continue
		}
		c.found.add(finding{rule: failedDone, x: other, y: f.Span, start: s.Call, end: c.holds[other].from})
	}
}

// grantedWithin is the first hold of another owner that excludes h and was granted in s; none if there is none.
func (v *view) grantedWithin(h *hold, s segment) int32 {
	for _, i := range v.byKey[h.key] {
		g := &v.holds[i]
		if g.owner != h.owner && g.from > s.from && g.from < s.until && !(g.reader && h.reader) {
			return i
		}
	}
	return none
}

// releasedIn says whether another release than failed, by its owner or by force, may have taken effect in s.
func (v *view) releasedIn(failed *history.Span, s segment) bool {
	for i := range v.h.Spans {
		x := &v.h.Spans[i]
		own := x.Op == history.OpRelease && x.Owner == failed.Owner && x != failed
		if x.Key == failed.Key && (own || x.Op == history.OpForceRelease) && x.Outcome != history.Fail &&
			x.Call <= s.until && x.Return >= s.from {
			return true
		}
	}
	return false
}

// doneViolation words a finding of judgeDone.
func (v *view) doneViolation(f finding) Violation {
	s, g := &v.h.Spans[f.y], &v.holds[f.x]
	w := v.involving("", f.y, g.span)
	w.Rule = "an operation that fails with certainty has no effect"
	w.Events = []int{int(s.Invoked), int(s.Ended), v.granted(g)}
	w.Text = fmt.Sprintf("the release of %s by client %d at %s ended with an error that says that it was not done, but "+
		"client %d was granted the lock at %s, before the promise to client %d had ended", lockName(w.Key), w.Clients[0],
		format.Instant(s.Call), w.Clients[1], format.Instant(g.from), w.Clients[0])
	return w
}

// judgeUnanswered finds the operations that ended without a known outcome after longer than the slack, although the
// only servers that were unavailable meanwhile were others than that of the key, at a lock that states that this does
// not matter (Options.Isolates).
func (v *view) judgeUnanswered(o Options, found *findings) {
	if o.Isolates == 0 {
		return
	}
	excuses, pauses, crashed := v.excusesOf(o), v.clientPauses(), v.crashes()
	elsewhere := v.outages(o)
	for _, u := range v.h.Unknown {
		s, client := &v.h.Spans[u.Span], v.client(u.Span)
		during := segment{s.Call, u.Time}
		if !isLockOp(s) && s.Op != history.OpRenew || s.Part || during.until-during.from <= o.slack() {
			continue
		}
		if at, is := crashed[client]; is && at >= s.Call || !elsewhere.touches(during) {
			continue
		}
		e := excuses(concernOf(s))
		if e.away.touches(during) || slices.ContainsFunc(pauses[client], func(p segment) bool {
			return p.from <= during.until && during.from <= p.until
		}) || e.dis.touch(during, client, history.AffectsData, history.AffectsTraffic, history.AffectsDelays,
			history.AffectsCommands, history.AffectsClients) {
			continue
		}
		found.add(finding{rule: unanswered, x: none, y: u.Span, start: during.from, end: during.until})
	}
}

// unansweredViolation words a finding of judgeUnanswered.
func (v *view) unansweredViolation(f finding) Violation {
	s := &v.h.Spans[f.y]
	w := v.spanViolation(f.y, "a server that hangs delays nothing that another one keeps", "")
	w.Class = ""
	w.Text = fmt.Sprintf("client %d had no reply to its %s of %s after %s, although only servers that do not keep it "+
		"were unavailable", w.Clients[0], s.Op, lockName(w.Key), format.Duration(f.end-f.start))
	return w
}

// judgeDoubt finds the acquires and tries of a quorum whose outcome stayed unknown although no more servers than may be
// down were unavailable from their invocation on: the others can say what they keep, and a claim that a majority has
// not, or has given back, is no hold.
func (v *view) judgeDoubt(o Options, found *findings) {
	if !o.Settles || !v.quorum {
		return
	}
	excuses, pauses, crashed := v.excusesOf(o), v.clientPauses(), v.crashes()
	for _, u := range v.h.Unknown {
		s, client := &v.h.Spans[u.Span], v.client(u.Span)
		during := segment{s.Call, u.Time}
		if s.Op != history.OpAcquire && s.Op != history.OpTry || s.Part || u.Timeout {
			continue
		}
		if at, is := crashed[client]; is && at >= s.Call {
			continue
		}
		if e := excuses(concernOf(s)); e.away.touches(during) || slices.ContainsFunc(pauses[client], func(p segment) bool {
			return p.from <= during.until && during.from <= later(p.until, o.slack())
		}) {
			continue
		}
		found.add(finding{rule: doubtful, x: none, y: u.Span, start: during.from, end: during.until})
	}
}

// doubtViolation words a finding of judgeDoubt.
func (v *view) doubtViolation(f finding) Violation {
	s := &v.h.Spans[f.y]
	w := v.spanViolation(f.y, "an acquire that a majority replies to has a known outcome", "")
	w.Class = ""
	w.Text = fmt.Sprintf("client %d requested %s at %s, and after %s it was unknown whether it has it, although a "+
		"majority of the servers was available", w.Clients[0], lockName(w.Key), format.Instant(s.Call),
		format.Duration(f.end-f.start))
	return w
}
