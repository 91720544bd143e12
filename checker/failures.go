package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// This file judges failures (history.Failure): operations that ended with an error of the network or of a server, not
// with a reply of the lock such as "held". A lock that retries after transient errors
// ([promise.RetriesTransientErrors]) should not have returned most of them. A command that is refused for lack of a
// permission need not be sent again.

// releasedFor is the time for which such a lock retries a release.
const releasedFor = 1500 * time.Millisecond

// judgeGivenUp finds acquires that failed before their wait timeout, and acquires that failed at the timeout although
// the lock was free and the servers were available for longer than the slack of the wait. The client starts the timeout
// after the request was recorded, so an acquire that used all of its time ends later than the request plus the timeout.
func (v *view) judgeGivenUp(o Options, found *findings) {
	if !o.states(promise.RetriesTransientErrors) {
		return
	}
	dis, excuses, unanswered := v.disturbances(o), v.excusesFor(o), make(map[int32]bool)
	for _, i := range v.h.Unanswered {
		unanswered[i] = true
	}
	for _, f := range v.h.Failures {
		s := &v.h.Spans[f.Span]
		if s.Op != history.OpAcquire || s.Part {
			continue
		}
		if v.waitedOut(f, o) {
			if !unanswered[f.Span] {
				v.judgeFailedWait(f, o, excuses(scopeOf(s)).away, found)
			}
			continue
		}
		if o.states(promise.MultiKey) && s.Outcome == history.Info && o.applies(wakeSeveral) {
			continue
		}
		if !o.applies(wakeRights) || !dis.refusedForGood(segment{s.Call, f.Time}, o) {
			found.add(finding{rule: gaveUp, x: none, y: f.Span, start: s.Call, end: f.Time})
		}
	}
}

// waitedOut reports whether an acquire failed when its wait was over.
func (v *view) waitedOut(f history.Failure, o Options) bool {
	return f.Wait > 0 && later(f.Time, o.ClockError+clockGrain) >= later(v.h.Spans[f.Span].Call, f.Wait)
}

// judgeFailedWait judges an acquire that failed at its wait timeout. It leaves out acquires of unknown outcome, because
// only the last of several requests may have got no reply, and acquires without any reply, because the client may have
// relied on the requests of other waiters.
func (v *view) judgeFailedWait(f history.Failure, o Options, away outageWindows, found *findings) {
	s := &v.h.Spans[f.Span]
	if s.Outcome != history.Fail {
		return
	}
	for g := range v.freeTimes().gapsOf(s.Key, segment{s.Call, f.Time}) {
		p := segment{max(g.from, s.Call), min(g.until, f.Time)}
		if p.until-p.from <= o.slack() {
			continue
		}
		p = longestOutside(p, v.clientPauses()[v.client(f.Span)], o.excusedBy(wakeOutage, away.windows))
		if p.until-p.from > o.slack() {
			found.add(finding{rule: failedWait, x: none, y: f.Span, start: p.from, end: p.until})
			return
		}
	}
}

// judgeNoReason finds the acquires that timed out with the error "no reply", although no fault except short delays was
// in force. A client with a lock object of its own sends its own requests, so it got replies, and the error must say
// that the lock was held. While a slot migrates, an acquire of several locks is not judged: each of the locks may be
// granted too late for the others.
func (v *view) judgeNoReason(o Options, found *findings) {
	if !o.states(promise.RetriesTransientErrors) || o.Shared && o.applies(wakeShared) {
		return
	}
	dis := v.disturbances(o)
	if o.states(promise.MultiKey) && o.applies(wakeSeveral) {
		dis = v.allDisturbances(o)
	}
	noDelay := func(f *faultTime) bool { return f.affects != history.AffectsDelays }
	for i, s := range refsAt(v.h.Spans, v.h.Unanswered) {
		during := segment{s.Call, s.Return}
		if s.Return-s.Call > o.slack() && !s.Part &&
			!(o.applies(wakeOutage) && dis.any(during, noDelay)) {
			found.add(finding{rule: noReason, x: none, y: i, start: s.Call, end: s.Return})
		}
	}
}

// clockGrain is the largest error by which the clock of a client may round a wait timeout.
const clockGrain = 10 * time.Millisecond

// judgeFailures finds the releases and renewals that failed before the lock can have retried them for releasedFor, and
// the other operations, except acquires, that failed although no fault had been in force. One that took longer is not
// judged, because the machine may have been busy, nor is a renewal when the promise had ended, which has no use, nor a
// try that took nearly as long as the lease that it asked for: a grant that is over when its reply comes is none.
func (c *honestyCheck) judgeFailures() {
	if !c.o.states(promise.RetriesTransientErrors) {
		return
	}
	for _, f := range c.h.Failures {
		s := &c.h.Spans[f.Span]
		if over := s.Lease * 9 / 10; s.Op == history.OpAcquire || s.Op == history.OpTry && over > 0 && f.Time-s.Call > over ||
			s.Part || later(f.Time, c.o.ClockError) >= later(s.Call, releasedFor) {
			continue
		}
		excused := c.all.refusedForGood(segment{s.Call, f.Time}, c.o)
		if s.Op != history.OpRelease && s.Op != history.OpRenew {
			excused = c.mayBeSlow() ||
				c.all.any(segment{0, f.Time}, func(f *faultTime) bool { return !c.affectsNowhere(f, scopeOf(s), c.o) })
		}
		if s.Op == history.OpRelease && c.mayHaveLostReply(s, f.Time) ||
			s.Op == history.OpRenew && c.promiseOver(s, later(f.Time, c.o.ClockError+clockGrain)) {
			continue
		}
		if !c.o.applies(honestRights) || !excused {
			c.found.add(finding{rule: gaveUpEarly, x: none, y: f.Span, start: s.Call, end: f.Time})
		}
	}
}

// Without a fault, at least enoughFailures operations of one kind (or both of two) and at least one in failureShare of
// them have to fail for a violation; on a quorum, enoughFailures of them and all of the kind.
const (
	enoughFailures = 3
	failureShare   = 20
)

// connections is how many requests of a client after a fault may fail because of it: each may use a connection that the
// fault has broken.
const connections = 4

// judgeFailuresOfHealthy finds the operations of every lock that failed although nothing disturbed them or the
// requests of their client just before, if they are more than the allowance of their kind. One that took longer than
// the slack is not judged, except an acquire, which may have waited: a busy machine is a reason for an error too,
// and so is a wait that is over; histories of other suites do not state it. A refusal may have an unknown outcome,
// or a code of the client's own; so tries, and releases and renewals after the promise, are not judged. On a quorum no
// operation of the kind may have succeeded: its masters may reply too late to some requests without a fault. A lock
// that was never granted, or a client that never authenticated, has not been set up for these servers.
func (c *honestyCheck) judgeFailuresOfHealthy() {
	if len(c.holds) == 0 || slices.ContainsFunc(c.h.Faults, func(f history.Fault) bool {
		return f.Name == history.NoPassword
	}) {
		return
	}
	u := c.undisturbed(c.o)
	failed := make(map[history.Op][]finding)
	for _, f := range c.h.Failures {
		s := &c.h.Spans[f.Span]
		slow := s.Op != history.OpAcquire && f.Time-s.Call > c.o.slack()
		if s.Op == history.OpTry || s.Op == history.OpAcquire && f.Wait == 0 || s.Part || slow ||
			c.wasClosed(f.Span) || c.waitedOut(f, c.o) ||
			!c.mayNotRefuse(s, f.Time) {
			continue
		}
		since := segment{c.usedBefore(f.Span, connections), f.Time}
		if u.ran(f.Span, since) == since && u.in(since, f.Span, []string{anything}) {
			failed[s.Op] = append(failed[s.Op], finding{rule: failedHealthy, x: none, y: f.Span, start: s.Call, end: f.Time,
				note: f.Why})
		}
	}
	total, worked := make(map[history.Op]int), make(map[history.Op]bool)
	for _, s := range refs(c.h.Spans) {
		total[s.Op]++
		worked[s.Op] = worked[s.Op] || s.Outcome == history.OK
	}
	for op, all := range failed { // findings are sorted
		enough := max(2, min(enoughFailures, total[op]), (total[op]+failureShare-1)/failureShare)
		if len(all) < enough || c.quorum && (worked[op] || len(all) < enoughFailures) {
			continue
		}
		for _, f := range all {
			f.note = fmt.Sprintf("%v; %d of %s did", f.note, len(all), format.Count(total[op], op.String()))
			c.found.add(f)
		}
	}
}

// mayNotRefuse reports whether an operation that ended at t is no release or renewal, or its owner had a hold whose
// promise was in force until then.
func (c *honestyCheck) mayNotRefuse(s *history.Span, t time.Duration) bool {
	if s.Op != history.OpRelease && s.Op != history.OpRenew {
		return true
	}
	n, held := c.lastHold(s.Owner, s.Key, s.Call)
	return held && c.holds[n].lastPromise() > later(t, c.o.ClockError+clockGrain)
}

// mayBeSlow reports whether the masters of a quorum may reply too late without a fault, because the lock waits only
// briefly for each of them.
func (c *honestyCheck) mayBeSlow() bool {
	return c.quorum && !c.o.settles() && c.o.applies(honestMinority)
}

// mayHaveLostReply reports whether release s may have an unknown outcome without having been retried until t: its reply
// was lost while a slot migrated, and the retry went to another server than the one that remembers the release.
func (c *honestyCheck) mayHaveLostReply(s *history.Span, t time.Duration) bool {
	during := segment{s.Call, t}
	return s.Outcome == history.Info && c.all.mayAffect(during, anyClient, history.AffectsSlots) &&
		c.all.mayAffect(during, anyClient, history.AffectsTraffic)
}

// promiseOver reports whether the promise to the hold that s renews had ended by t, so that the lock could not wait any
// longer for a reply.
func (c *honestyCheck) promiseOver(s *history.Span, t time.Duration) bool {
	for _, h := range c.byOwner().at(s.Owner, s.Key, s.Call) {
		open := h.until >= s.Call || h.lastPromise() >= s.Call // the client does not know of a forced release
		if open && h.lastPromise() <= t {
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
