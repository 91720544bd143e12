package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

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

func wakeUpRules() []string {
	return []string{notWoken: "not-woken", notAdmitted: "not-admitted", tryRefused: "refused-try", tryWaited: "waited-try",
		waitedNeverGrantable: "never-grantable", notReturned: "not-returned", waitUnused: "wait-unused",
		requestStorm: "storm", dialStorm: "dials", wokenTooMany: "herd", gaveUp: "gave-up", failedWait: "failed-wait",
		closedWait: "closed-wait", keptToItself: "no-turns", holdAndWait: "hold-and-wait", unanswered: "unanswered",
		outcomeUnknown: "outcome-unknown", ownGrant: "own-grant", noReason: "no-reason", waitedWhileFree: "shown-free",
		wakeOutage: "outage", wakePaused: "waiter-paused", wakeLate: "replied-late", wakeRights: "no-permission",
		wakeShared: "shared-object", wakeAhead: "earlier-waiter", wakeSeveral: "several-locks", wakeSteps: "slow-requests"}
}

// checkWakeUp looks for waiters that were not served although the lock had been released: the wake-up was lost, or went
// to no waiter (redisson#4744: a reader is not woken when a writer releases). Free means that no client can have held
// it, by the longest possible intervals (see free_times.go). A wait that timed out counts like a wait that was served
// in the end. Recovery judges the time after a hold that was not released.
//
// An acquire with a wait has to return when its wait ends, and not before (see time_bounds.go). The harness records
// that a reply did not come only long after that; if the client was running and the servers were available in the
// slack before, and no reply ever came, the lock waits without an end.
//
// It is sound up to the slack, which has to be longer than a round trip and than the polling interval of a lock that
// polls.
func checkWakeUp(v *view, o Options) Result {
	found := newFindings(o)
	asked := len(v.h.TimedOut) + len(v.h.Unanswered)
	for i := range v.holds {
		if v.h.Spans[v.holds[i].span].Op == history.OpAcquire {
			asked++
		}
	}
	timed := o.withoutSlowMigration(wakeSteps)
	v.unservedWaits(timed, waitRules{notWoken, wakeOutage, wakePaused}, found, afterRelease, neverHeld)
	asked += v.unreturned(o, found)
	v.judgeCapacity(timed, found)
	v.judgeTimeBounds(timed, found)
	v.judgeOwnGrants(timed, found)
	v.judgeWaitsWhileFree(timed, found)
	v.judgeRequestsNeverGrantable(o, found)
	v.judgeGivenUp(o, found)
	v.judgeNoReason(o, found)
	v.judgeClosedWaits(o, found)
	v.judgeUnanswered(o, found)
	v.judgeUnknownOutcomes(o, found)
	v.judgeTurns(o, found)
	v.judgeHoldAndWait(o, found)
	v.judgeStorms(o, found)
	v.judgeDials(o, found)
	v.judgeHerds(o, found)
	r := found.result(WakeUp, v.wakeUpViolation)
	r.Counts = map[string]int64{"acquires": int64(asked), "free_times": int64(len(v.freeTimes().gaps))}
	switch {
	case r.Outcome == Violated:
	case asked == 0 && slices.ContainsFunc(v.h.Spans, func(s history.Span) bool {
		return s.Op == history.OpAcquire && s.Outcome == history.Info
	}):
		r.Outcome, r.Summary = Undecided, "every acquire that can have waited has an unknown outcome"
	case asked == 0:
		r.Outcome, r.Summary = NotApplicable, noWaits
	default:
		r.Summary = fmt.Sprintf("no waiter waited for more than %s while the lock was free", format.Duration(o.slack()))
	}
	return r
}

// unreturned finds the acquires that never returned; it returns how many the harness stopped waiting for.
func (v *view) unreturned(o Options, found *findings) (asked int) {
	excuses := v.excusesFor(o)
	for _, u := range v.h.Unknown {
		s := &v.h.Spans[u.Span]
		if !u.Timeout || s.Op != history.OpAcquire || u.Wait <= 0 {
			continue
		}
		asked++
		p := longestOutside(segment{max(s.Call, u.Time-2*o.slack()), u.Time},
			o.excusedBy(wakeOutage, excuses(scopeOf(s)).away.windows),
			o.excusedBy(wakePaused, v.clientPauses()[v.client(u.Span)]))
		if p.until-p.from > o.slack() && !(o.applies(wakeLate) && v.repliedLateOrCrashed(s, u.Time)) {
			found.add(finding{rule: notReturned, x: none, y: u.Span, start: later(s.Call, u.Wait), end: u.Time})
		}
	}
	return asked
}

// repliedLateOrCrashed reports whether the client of s replied late or crashed: its process number is not used for
// anything else after the harness stopped waiting at t.
func (v *view) repliedLateOrCrashed(s *history.Span, t time.Duration) bool {
	client := s.Process.Client(v.h.Clients)
	return slices.ContainsFunc(v.h.Notices, func(n history.Notice) bool {
		return n.Process.Client(v.h.Clients) == client && n.Time >= s.Call &&
			(n.F == history.Crash || n.Time >= t && strings.HasPrefix(n.F, history.LatePrefix))
	})
}

// wakeUpWords are the wordings of the rules of wake-up, except for the rules that [view.wakeUpViolation] words itself.
func wakeUpWords() map[int]wording {
	return map[int]wording{
		notReturned: {"", nothing, "an acquire returns when its wait ends",
			"client $client requested $lock at $call, and the acquire was still pending at $end, $length after the end of " +
				"its wait"},
		waitUnused: {"", nothing, "an acquire waits until its wait is over, or is refused with code " + history.CodeRefused,
			"client $client requested $lock at $call, and got code $note at $return, $length before the end of its wait"},
		notWoken: {"", endedHold, "a waiter for a free lock gets it",
			"client $client waited for $lock $during although no client held it: client $other had released it by $freed"},
		notAdmitted: {"", nothing, "a request is granted if no other client is in its way",
			"client $client waited for $what $during although $note"},
		tryRefused: {"", nothing, "a request is granted if no other client is in its way",
			"client $client was refused $what at $return, although $note"},
		tryWaited: {"", nothing, "a try does not wait", "client $client tried to acquire $lock at $call, and $note"},
		ownGrant: {"", nothing, "an acquire does not wait for its own grant",
			"client $client waited for $lock until $return, and returned what it had been granted, although no other client " +
				"can have held it $during"},
		waitedWhileFree: {"", nothing, "a waiter for a free lock gets it",
			"client $client waited for $lock $during although the servers had no hold of it"},
		waitedNeverGrantable: {"", nothing, "a request that can never be granted is refused at once",
			"client $client waited $length to write $lock, although it held that lock for reading itself, all the time"},
		gaveUp: {"", nothing, "a wait continues after a transient error",
			"client $client requested $lock at $start, and its wait ended with an error after $length, before it was over"},
		outcomeUnknown: {"", nothing, "an acquire that a majority replies to has a known outcome",
			"client $client requested $lock at $call, and after $length it was unknown whether it has it, although a " +
				"majority of the servers was available"},
		failedWait: {"", nothing, "an acquire of a free lock does not end with an error",
			"client $client requested $lock at $call, and the acquire ended with an error, although the lock was free and " +
				"the servers were available for $length of its wait ($start to $end)"},
		noReason: {"", nothing, "the error of a wait that is over states the servers' replies",
			"client $client requested $lock at $call, and its wait ended after $length as if no server had replied, although " +
				"no fault prevented a reply"},
		closedWait: {"", nothing, "an acquire ends when its lock object is closed",
			"client $client requested $lock at $call and closed its lock object at $start, but the acquire returned only " +
				"$length later"},
		unanswered: {"", nothing, "a server that hangs does not delay operations on keys of other servers",
			"client $client had no reply to its $op of $lock after $length, although only servers that do not keep it were " +
				"unavailable"},
		keptToItself: {"", otherHold, "no program keeps the lock to itself while a client of another one waits",
			"client $client waited for $lock $during, while it was granted again and again, and only to the program of " +
				"client $other"},
		holdAndWait: {"", otherOp, "an acquire of several keys that has to wait for one of them does not keep the others",
			"client $client waited for $lock $during although no client held it: only client $other can have had it, inside " +
				"an acquire of several keys that waited for $note"},
	}
}

// wakeUpViolation puts a finding of [WakeUp] into words.
func (v *view) wakeUpViolation(f finding) Violation {
	s, w := &v.h.Spans[f.y], wakeUpWords()[f.rule]
	switch f.rule {
	case requestStorm, dialStorm, wokenTooMany:
		return v.excessViolation(f)
	case notWoken:
		if f.x < 0 {
			w.text = "client $client waited for $lock $during although no client held it, or ever had"
		}
	case notReturned:
		if f.note == lateAnswer {
			w.text = "client $client requested $lock at $call, and the acquire returned only at $end, $length after the end " +
				"of its wait"
		}
	case tryWaited:
		if s.Op == history.OpRelease || s.Op == history.OpRenew {
			w.rule = "a $noun takes no longer than its requests"
			w.text = "client $client $did $lock at $start, and the $noun " +
				either(s.Outcome == history.Info, "had not returned", "returned only") + " after $length"
		}
	case unanswered:
		if v.quorum {
			w.rule = "the replies of a majority decide the outcome"
			w.text = "client $client had no reply to its $op of $lock after $length, although a majority of the servers had " +
				"the hold, and was available"
		}
	case waitedNeverGrantable:
		switch during := (segment{s.Call, s.Return}); {
		case v.h.Limit(s.Key) > 0:
			_, most := v.sizesIn(s.Key, during)
			w.text = fmt.Sprintf("client $client waited for $what for $length, although there are only %d", most)
		case !v.holdsThroughout(s.Owner, s.Key, during, true):
			w.text = "client $client held $lock, requested it again at $call, and was refused as if another owner held it"
		}
	case keptToItself:
		x := v.word(f, w)
		x.Events = []int{int(s.Invoked), v.granted(&v.holds[f.x])}
		return x
	}
	return v.word(f, w)
}
