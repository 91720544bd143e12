package wakeup

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/cost"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/internal/waiting"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of wake-up.
const (
	notWoken             = iota // a waiter was not served although the lock was free
	notAdmitted                 // a waiter was not served although there was room for it
	tryRefused                  // a try was refused although there was room for it
	tryWaited                   // a try waited, or a release or a renewal took long
	waitedNeverGrantable        // a request that can never be granted waited, at a lock that states that it refuses it
	notReturned                 // an acquire did not return long after its wait had ended, or only then
	waitUnused                  // an acquire gave up long before its wait was over
	requestStorm                // a process sent requests again and again without a pause
	dialStorm                   // a process dialed again and again without a pause
	wokenTooMany                // a release woke more waiters than it could let in
	gaveUp                      // an acquire ended with an error before its wait was over
	failedWait                  // an acquire ended with an error although the lock was free and the servers available
	noReason                    // a wait ended without a reply although there was no fault
	closedWait                  // an acquire did not return although its lock object had been closed
	keptToItself                // a program kept the lock to itself while clients of others waited
	holdAndWait                 // an acquire of several keys kept one with other waiters, while it waited for another
	unanswered                  // an operation had no reply although only other servers than its own were unavailable
	ownGrant                    // an acquire waited for its own grant
	outcomeUnknown              // the outcome of an acquire stayed unknown although a majority was available
	waitedWhileFree             // a waiter was not served although the servers had no hold
	wakeOutage                  // acquits: the servers were unavailable
	wakePaused                  // acquits: the waiter was paused
	wakeLate                    // acquits: the reply came, or the client crashed
	wakeRights                  // acquits: a permission was revoked
	wakeShared                  // acquits: another client of the lock object may have sent its request
	wakeAhead                   // acquits: at a fair lock, others came first
	wakeSeveral                 // acquits: an acquire of several locks cannot start again, or has no time for all of them
	wakeSteps                   // acquits: while a slot migrates, each of many requests may be slow
)

// Check looks for waiters that were not served although the lock had been released: the wake-up was lost, or went
// to no waiter (redisson#4744: a reader is not woken when a writer releases). Free means that no client can have held
// it, by the longest possible intervals (see package bounds). A wait that timed out counts like a wait that was served
// in the end. Recovery judges the time after a hold that was not released.
//
// An acquire with a wait has to return when its wait ends, and not before (see time_bounds.go). The harness records
// that a reply did not come only long after that; if the client was running and the servers were available in the
// slack before, and no reply ever came, the lock waits without an end.
//
// It is sound up to the slack, which has to be longer than a round trip and than the polling interval of a lock that
// polls.
func Check(v *bounds.View, o given.Options) property.Result {
	found := finding.New(o)
	asked := len(v.H.TimedOut) + len(v.H.Unanswered)
	for i := range v.Holds {
		if v.H.Spans[v.Holds[i].Span].Op == history.OpAcquire {
			asked++
		}
	}
	timed := excuse.WithoutSlowMigration(o, wakeSteps)
	waiting.UnservedWaits(v, timed, waiting.WaitRules{Convict: notWoken, Outage: wakeOutage, Paused: wakePaused}, found,
		bounds.AfterRelease, bounds.NeverHeld)
	asked += unreturned(v, o, found)
	judgeCapacity(v, timed, found)
	judgeTimeBounds(v, timed, found)
	judgeOwnGrants(v, timed, found)
	judgeWaitsWhileFree(v, timed, found)
	judgeRequestsNeverGrantable(v, o, found)
	judgeGivenUp(v, o, found)
	judgeNoReason(v, o, found)
	judgeClosedWaits(v, o, found)
	judgeUnanswered(v, o, found)
	judgeUnknownOutcomes(v, o, found)
	judgeTurns(v, o, found)
	judgeHoldAndWait(v, o, found)
	judgeStorms(v, o, found)
	judgeDials(v, o, found)
	judgeHerds(v, o, found)
	r := found.Result(property.WakeUp, func(f finding.Finding) property.Violation { return wakeUpViolation(v, f) })
	r.Counts = map[string]int64{"acquires": int64(asked), "free_times": int64(len(v.FreeTimes().Gaps))}
	switch {
	case r.Outcome == property.Violated:
	case asked == 0 && slices.ContainsFunc(v.H.Spans, func(s history.Span) bool {
		return s.Op == history.OpAcquire && s.Outcome == history.Info
	}):
		r.Outcome, r.Summary = property.Undecided, "every acquire that can have waited has an unknown outcome"
	case asked == 0:
		r.Outcome, r.Summary = property.NotApplicable, finding.NoWaits
	default:
		r.Summary = fmt.Sprintf("no waiter waited for more than %s while the lock was free", format.Duration(o.Slack()))
	}
	return r
}

// unreturned finds the acquires that never returned; it returns how many the harness stopped waiting for.
func unreturned(v *bounds.View, o given.Options, found *finding.Findings) (asked int) {
	excuses := v.ExcusesFor(o)
	for _, u := range v.H.Unknown {
		s := &v.H.Spans[u.Span]
		if !u.Timeout || s.Op != history.OpAcquire || u.Wait <= 0 {
			continue
		}
		asked++
		p := segment.LongestOutside(segment.Of(max(s.Call, u.Time-2*o.Slack()), u.Time),
			o.ExcusedBy(wakeOutage, excuses(excuse.ScopeOf(s)).Away.Windows),
			o.ExcusedBy(wakePaused, v.ClientPauses()[v.Client(u.Span)]))
		if p.Until-p.From > o.Slack() && !(o.Applies(wakeLate) && repliedLateOrCrashed(v, s, u.Time)) {
			found.Add(finding.Finding{Rule: notReturned, X: refs.None, Y: u.Span, Start: segment.Later(s.Call, u.Wait),
				End: u.Time})
		}
	}
	return asked
}

// repliedLateOrCrashed reports whether the client of s replied late or crashed: its process number is not used for
// anything else after the harness stopped waiting at t.
func repliedLateOrCrashed(v *bounds.View, s *history.Span, t time.Duration) bool {
	client := s.Process.Client(v.H.Clients)
	return slices.ContainsFunc(v.H.Notices, func(n history.Notice) bool {
		return n.Process.Client(v.H.Clients) == client && n.Time >= s.Call &&
			(n.F == history.Crash || n.Time >= t && strings.HasPrefix(n.F, history.LatePrefix))
	})
}

// Rules are the rules of wake-up, except for the rules that [wakeUpViolation] words itself.
func Rules() finding.Rules {
	return finding.Rules{
		notReturned: {Name: "not-returned", Sentence: "an acquire returns when its wait ends",
			Text: "client $client requested $lock at $call, and the acquire was still pending at $end, $length after the end " +
				"of its wait"},
		waitUnused: {Name: "wait-unused", Sentence: "an acquire waits until its wait is over, or is refused with code " +
			history.CodeRefused,
			Text: "client $client requested $lock at $call, and got code $note at $return, $length before the end of its wait"},
		notWoken: {Name: "not-woken", X: finding.EndedHold, Sentence: "a waiter for a free lock gets it",
			Text: "client $client waited for $lock $during although no client held it: client $other had released it by $freed"},
		notAdmitted: {Name: "not-admitted", Sentence: "a request is granted if no other client is in its way",
			Text: "client $client waited for $what $during although $note"},
		tryRefused: {Name: "refused-try", Sentence: "a request is granted if no other client is in its way",
			Text: "client $client was refused $what at $return, although $note"},
		tryWaited: {Name: "waited-try", Sentence: "a try does not wait",
			Text: "client $client tried to acquire $lock at $call, and $note"},
		ownGrant: {Name: "own-grant", Sentence: "an acquire does not wait for its own grant",
			Text: "client $client waited for $lock until $return, and returned what it had been granted, although no other " +
				"client can have held it $during"},
		waitedWhileFree: {Name: "shown-free", Sentence: "a waiter for a free lock gets it",
			Text: "client $client waited for $lock $during although the servers had no hold of it"},
		waitedNeverGrantable: {Name: "never-grantable", Sentence: "a request that can never be granted is refused at once",
			Text: "client $client waited $length to write $lock, although it held that lock for reading itself, all the time"},
		gaveUp: {Name: "gave-up", Sentence: "a wait continues after a transient error",
			Text: "client $client requested $lock at $start, and its wait ended with an error after $length, before it was " +
				"over"},
		outcomeUnknown: {Name: "outcome-unknown", Sentence: "an acquire that a majority replies to has a known outcome",
			Text: "client $client requested $lock at $call, and after $length it was unknown whether it has it, although a " +
				"majority of the servers was available"},
		failedWait: {Name: "failed-wait", Sentence: "an acquire of a free lock does not end with an error",
			Text: "client $client requested $lock at $call, and the acquire ended with an error, although the lock was free " +
				"and the servers were available for $length of its wait ($start to $end)"},
		noReason: {Name: "no-reason", Sentence: "the error of a wait that is over states the servers' replies",
			Text: "client $client requested $lock at $call, and its wait ended after $length as if no server had replied, " +
				"although no fault prevented a reply"},
		closedWait: {Name: "closed-wait", Sentence: "an acquire ends when its lock object is closed",
			Text: "client $client requested $lock at $call and closed its lock object at $start, but the acquire returned " +
				"only $length later"},
		unanswered: {Name: "unanswered", Sentence: "a server that hangs does not delay operations on keys of other servers",
			Text: "client $client had no reply to its $op of $lock after $length, although only servers that do not keep it " +
				"were unavailable"},
		keptToItself: {Name: "no-turns", X: finding.OtherHold,
			Sentence: "no program keeps the lock to itself while a client of another one waits",
			Text: "client $client waited for $lock $during, while it was granted again and again, and only to the program of " +
				"client $other"},
		holdAndWait: {Name: "hold-and-wait", X: finding.OtherOp,
			Sentence: "an acquire of several keys that has to wait for one of them does not keep the others",
			Text: "client $client waited for $lock $during although no client held it: only client $other can have had it, " +
				"inside an acquire of several keys that waited for $note"},
		requestStorm: {Name: "storm"}, dialStorm: {Name: "dials"}, wokenTooMany: {Name: "herd"},
		wakeOutage: {Name: "outage"}, wakePaused: {Name: "waiter-paused"}, wakeLate: {Name: "replied-late"},
		wakeRights: {Name: "no-permission"}, wakeShared: {Name: "shared-object"}, wakeAhead: {Name: "earlier-waiter"},
		wakeSeveral: {Name: "several-locks"}, wakeSteps: {Name: "slow-requests"},
	}
}

// wakeUpViolation puts a finding of [property.WakeUp] into words.
func wakeUpViolation(v *bounds.View, f finding.Finding) property.Violation {
	s, w := &v.H.Spans[f.Y], Rules()[f.Rule]
	switch f.Rule {
	case requestStorm, dialStorm, wokenTooMany:
		return cost.ExcessViolation(v, f)
	case notWoken:
		if f.X < 0 {
			w.Text = "client $client waited for $lock $during although no client held it, or ever had"
		}
	case notReturned:
		if f.Note == lateAnswer {
			w.Text = "client $client requested $lock at $call, and the acquire returned only at $end, $length after the end " +
				"of its wait"
		}
	case tryWaited:
		if s.Op == history.OpRelease || s.Op == history.OpRenew {
			w.Sentence = "a $noun takes no longer than its requests"
			w.Text = "client $client $did $lock at $start, and the $noun " +
				finding.Either(s.Outcome == history.Info, "had not returned", "returned only") + " after $length"
		}
	case unanswered:
		if v.Quorum {
			w.Sentence = "the replies of a majority decide the outcome"
			w.Text = "client $client had no reply to its $op of $lock after $length, although a majority of the servers had " +
				"the hold, and was available"
		}
	case waitedNeverGrantable:
		switch during := (segment.Of(s.Call, s.Return)); {
		case v.H.Limit(s.Key) > 0:
			_, most := v.SizesIn(s.Key, during)
			w.Text = fmt.Sprintf("client $client waited for $what for $length, although there are only %d", most)
		case !v.HoldsThroughout(s.Owner, s.Key, during, true):
			w.Text = "client $client held $lock, requested it again at $call, and was refused as if another owner held it"
		}
	case keptToItself:
		x := finding.Word(v, f, w)
		x.Events = []int{int(s.Invoked), v.Granted(&v.Holds[f.X])}
		return x
	}
	return finding.Word(v, f, w)
}
