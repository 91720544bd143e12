package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file is about operations that ended with an error which is no answer of the lock (history.Failure), at a lock
// that states that it continues after transient errors (Options.Persists). What is refused for want of a permission
// need not be sent again.

// releasedFor is for how long such a lock sends a release again.
const releasedFor = 1500 * time.Millisecond

// judgeGivenUp finds the acquires that ended with an error before their wait was over, and those that ended with a
// certain one when it was over, although the lock was free and the servers were available for longer than the slack of
// it. The wait begins after the request, and so an acquire that used it up ends later.
func (v *view) judgeGivenUp(o Options, found *findings) {
	if !o.Persists {
		return
	}
	dis := v.disturbances(o)
	for _, f := range v.h.Failures {
		s := &v.h.Spans[f.Span]
		if s.Op != history.OpAcquire || s.Part {
			continue
		}
		if f.Wait > 0 && later(f.Time, o.ClockError+clockGrain) >= later(s.Call, f.Wait) {
			v.judgeFailedWait(f, o, found)
			continue
		}
		if o.SeveralKeys && s.Outcome == history.Info && o.applies(wakeSeveral) {
			continue
		}
		if !o.applies(wakeRights) || !dis.refusedForGood(segment{s.Call, f.Time}, o) {
			found.add(finding{rule: gaveUp, x: none, y: f.Span, start: s.Call, end: f.Time})
		}
	}
}

// judgeFailedWait judges an acquire that ended with an error when its wait was over. An unknown outcome may be that of
// its last request, and one without a reply may have relied on other waiters.
func (v *view) judgeFailedWait(f history.Failure, o Options, found *findings) {
	s := &v.h.Spans[f.Span]
	if s.Outcome != history.Fail || slices.Contains(v.h.Unanswered, f.Span) {
		return
	}
	without := merged(v.clientPauses()[v.client(f.Span)], o.excusedBy(wakeOutage, v.outagesFor(scopeOf(s), o).windows))
	for _, g := range v.freeTimes().gaps {
		p := segment{max(g.from, s.Call), min(g.until, f.Time)}
		if g.key != s.Key || p.until-p.from <= o.slack() {
			continue
		}
		if p = longestOutside(p, without); p.until-p.from > o.slack() {
			found.add(finding{rule: failedWait, x: none, y: f.Span, start: p.from, end: p.until})
			return
		}
	}
}

// judgeNoReason finds the acquires whose wait ended as if no server had replied, although no fault but short delays was
// in force. A client that shares its lock object with no other sends requests of its own, so it has had replies, and
// the error must state them. While keys move, each of several locks may be granted too late for the others.
func (v *view) judgeNoReason(o Options, found *findings) {
	if !o.Persists || o.Shared && o.applies(wakeShared) {
		return
	}
	dis := v.disturbances(o)
	if o.SeveralKeys && o.applies(wakeSeveral) {
		dis = v.allDisturbances(o)
	}
	noDelay := func(f *faultTime) bool { return f.affects != history.AffectsDelays }
	for i, s := range refsAt(v.h.Spans, v.h.Unanswered) {
		during := segment{s.Call, s.Return}
		if s.Return-s.Call > o.slack() && !s.Part &&
			!(o.applies(wakeOutage) && dis.some(during, noDelay)) {
			found.add(finding{rule: noReason, x: none, y: i, start: s.Call, end: s.Return})
		}
	}
}

// clockGrain is by how much the clock of a client may round a wait.
const clockGrain = 10 * time.Millisecond

// judgeFailures finds the releases and renewals that ended with an error sooner than the lock sends them again, and the
// other operations that ended with one although no fault had been in force. One that took longer may have met a machine
// that is busy. A renewal is of no use when the promise has ended.
func (c *honestyCheck) judgeFailures() {
	if !c.o.Persists {
		return
	}
	for _, f := range c.h.Failures {
		s := &c.h.Spans[f.Span]
		if s.Op == history.OpAcquire || s.Part || later(f.Time, c.o.ClockError) >= later(s.Call, releasedFor) {
			continue
		}
		excused := c.all.refusedForGood(segment{s.Call, f.Time}, c.o)
		if s.Op != history.OpRelease && s.Op != history.OpRenew {
			excused = c.mayBeSlow() ||
				c.all.some(segment{0, f.Time}, func(f *faultTime) bool { return !c.affectsNowhere(f, scopeOf(s), c.o) })
		}
		if s.Op == history.OpRelease && c.unsure(s, f.Time) ||
			s.Op == history.OpRenew && c.promiseOver(s, later(f.Time, c.o.ClockError+clockGrain)) {
			continue
		}
		if !c.o.applies(honestRights) || !excused {
			c.found.add(finding{rule: gaveUpEarly, x: none, y: f.Span, start: s.Call, end: f.Time})
		}
	}
}

// mayBeSlow reports whether masters of a quorum may reply too late without a fault: the lock waits for each only
// briefly.
func (c *honestyCheck) mayBeSlow() bool {
	return c.quorum && !c.o.Settles && c.o.applies(honestMinority)
}

// unsure reports whether the outcome of a release until t may be unknown at once: its reply may have been lost while
// keys moved, and what the servers remember of it is at a master that another request of the same release did not
// reach.
func (c *honestyCheck) unsure(s *history.Span, t time.Duration) bool {
	during := segment{s.Call, t}
	return s.Outcome == history.Info && c.all.touch(during, anyClient, history.AffectsSlots) &&
		c.all.touch(during, anyClient, history.AffectsTraffic)
}

// promiseOver reports whether the hold that s renews was promised until t at most: then the lock can wait no longer for
// a reply.
func (c *honestyCheck) promiseOver(s *history.Span, t time.Duration) bool {
	for _, h := range refsAt(c.holds, c.byKey[s.Key]) {
		open := h.until >= s.Call || h.lastPromise() >= s.Call // the client does not know of a forced release
		if h.owner == s.Owner && h.from <= s.Call && open && h.lastPromise() <= t {
			return true
		}
	}
	return false
}

// failureViolation puts a finding of judgeFailures into words.
func (c *honestyCheck) failureViolation(f finding) Violation {
	w := wording{"", nothing, "an operation ends with an error only if the lock has no alternative",
		"the $op of $lock by client $client at $start ended with an error after $length, although there had been no fault"}
	switch c.h.Spans[f.y].Op {
	case history.OpRelease:
		w.rule = "a release is retried after a transient error"
		w.text = "client $client released $lock at $start, and the lock gave up with an error after $length"
	case history.OpRenew:
		w.rule = "a renewal is retried after a transient error"
		w.text = "client $client renewed $lock at $start, and the lock gave up with an error after $length, long before " +
			"the promise ended"
	}
	return c.word(f, w)
}
