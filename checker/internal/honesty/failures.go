package honesty

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/waiting"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// This file judges failures (history.Failure): operations that ended with an error of the network or of a server, not
// with a reply of the lock such as "held". A lock that retries after transient errors
// ([promise.RetriesTransientErrors]) should not have returned most of them. A command that is refused for lack of a
// permission need not be sent again.

// judgeFailures finds the releases and renewals that failed before the lock can have retried them for ReleasedFor, and
// the other operations, except acquires, that failed although no fault had been in force. One that took longer is not
// judged, because the machine may have been busy, nor is a renewal when the promise had ended, which has no use, nor a
// try that took nearly as long as the lease that it asked for: a grant that is over when its reply comes is none.
func judgeFailures(c *claims.Check) {
	if !c.O.States(promise.RetriesTransientErrors) {
		return
	}
	for _, f := range c.H.Failures {
		s := &c.H.Spans[f.Span]
		if over := s.Lease * 9 / 10; s.Op == history.OpAcquire || s.Op == history.OpTry && over > 0 && f.Time-s.Call > over ||
			s.Part || segment.Later(f.Time, c.O.ClockError) >= segment.Later(s.Call, waiting.ReleasedFor) {
			continue
		}
		excused := c.All.RefusedForGood(segment.Of(s.Call, f.Time), c.O)
		if s.Op != history.OpRelease && s.Op != history.OpRenew {
			excused = mayBeSlow(c) ||
				c.All.Any(segment.Of(0, f.Time), func(f *excuse.FaultTime) bool {
					return !c.AffectsNowhere(f, excuse.ScopeOf(s),
						c.O)
				})
		}
		if s.Op == history.OpRelease && mayHaveLostReply(c, s, f.Time) ||
			s.Op == history.OpRenew && promiseOver(c, s, segment.Later(f.Time, c.O.ClockError+waiting.ClockGrain)) {
			continue
		}
		if !c.O.Applies(claims.HonestRights) || !excused {
			c.Found.Add(finding.Finding{Rule: claims.GaveUpEarly, X: refs.None, Y: f.Span, Start: s.Call, End: f.Time})
		}
	}
}

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
func judgeFailuresOfHealthy(c *claims.Check) {
	if len(c.Holds) == 0 || slices.ContainsFunc(c.H.Faults, func(f history.Fault) bool {
		return f.Name == history.NoPassword
	}) {
		return
	}
	u := c.Undisturbed(c.O)
	failed := make(map[history.Op][]finding.Finding)
	for _, f := range c.H.Failures {
		s := &c.H.Spans[f.Span]
		slow := s.Op != history.OpAcquire && f.Time-s.Call > c.O.Slack()
		if s.Op == history.OpTry || s.Op == history.OpAcquire && f.Wait == 0 || s.Part || slow ||
			c.WasClosed(f.Span) || waiting.WaitedOut(c.View, f, c.O) ||
			!mayNotRefuse(c, s, f.Time) {
			continue
		}
		since := segment.Of(c.UsedBefore(f.Span, connections), f.Time)
		if u.Ran(f.Span, since) == since && u.In(since, f.Span, []string{bounds.Anything}) {
			failed[s.Op] = append(failed[s.Op], finding.Finding{Rule: claims.FailedHealthy, X: refs.None, Y: f.Span,
				Start: s.Call, End: f.Time,
				Note: f.Why})
		}
	}
	total, worked := make(map[history.Op]int), make(map[history.Op]bool)
	for _, s := range refs.All(c.H.Spans) {
		total[s.Op]++
		worked[s.Op] = worked[s.Op] || s.Outcome == history.OK
	}
	for op, all := range failed { // findings are sorted
		enough := max(2, min(waiting.EnoughFailures, total[op]), (total[op]+waiting.FailureShare-1)/waiting.FailureShare)
		if len(all) < enough || c.Quorum && (worked[op] || len(all) < waiting.EnoughFailures) {
			continue
		}
		for _, f := range all {
			f.Note = fmt.Sprintf("%v; %d of %s did", f.Note, len(all), format.Count(total[op], op.String()))
			c.Found.Add(f)
		}
	}
}

// mayNotRefuse reports whether an operation that ended at t is no release or renewal, or its owner had a hold whose
// promise was in force until then.
func mayNotRefuse(c *claims.Check, s *history.Span, t time.Duration) bool {
	if s.Op != history.OpRelease && s.Op != history.OpRenew {
		return true
	}
	n, held := c.LastHold(s.Owner, s.Key, s.Call)
	return held && c.Holds[n].LastPromise() > segment.Later(t, c.O.ClockError+waiting.ClockGrain)
}

// mayBeSlow reports whether the masters of a quorum may reply too late without a fault, because the lock waits only
// briefly for each of them.
func mayBeSlow(c *claims.Check) bool {
	return c.Quorum && !c.O.Settles() && c.O.Applies(claims.HonestMinority)
}

// mayHaveLostReply reports whether release s may have an unknown outcome without having been retried until t: its reply
// was lost while a slot migrated, and the retry went to another server than the one that remembers the release.
func mayHaveLostReply(c *claims.Check, s *history.Span, t time.Duration) bool {
	during := segment.Of(s.Call, t)
	return s.Outcome == history.Info && c.All.MayAffect(during, excuse.AnyClient, history.AffectsSlots) &&
		c.All.MayAffect(during, excuse.AnyClient, history.AffectsTraffic)
}

// promiseOver reports whether the promise to the hold that s renews had ended by t, so that the lock could not wait any
// longer for a reply.
func promiseOver(c *claims.Check, s *history.Span, t time.Duration) bool {
	for _, h := range c.ByOwner().At(s.Owner, s.Key, s.Call) {
		open := h.Until >= s.Call || h.LastPromise() >= s.Call // the client does not know of a forced release
		if open && h.LastPromise() <= t {
			return true
		}
	}
	return false
}

// failureViolation puts a finding of judgeFailures into words.
func failureViolation(c *claims.Check, f finding.Finding) property.Violation {
	w := claims.Rules()[f.Rule]
	switch c.H.Spans[f.Y].Op {
	case history.OpRelease:
		w.Sentence = "a release is retried after a transient error"
		w.Text = "client $client released $lock at $start, and the lock gave up with an error after $length"
	case history.OpRenew:
		w.Sentence = "a renewal is retried after a transient error"
		w.Text = "client $client renewed $lock at $start, and the lock gave up with an error after $length, long before " +
			"the promise ended"
	}
	return finding.Word(c.View, f, w)
}
