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
	notWoken      = iota // a waiter was not served although the lock was free
	notAdmitted          // a waiter was not served although there was room for it
	tryRefused           // a try was refused although there was room for it
	tryWaited            // a try waited
	waitedInVain         // a request that can never be granted waited, at a lock that states that it refuses it
	notReturned          // an acquire did not return, long after its wait had ended
	requestStorm         // a process sent requests again and again without a pause
	dialStorm            // a process dialed again and again without a pause
	wokenInVain          // a release woke more waiters than it could let in
	gaveUp               // an acquire ended with an error before its wait was over
	failedWait           // an acquire ended with an error although the lock was free and the servers available
	noReason             // a wait ended without a reply although there was no fault
	closedWait           // an acquire did not return although its lock object had been closed
	keptToItself         // a program kept the lock to itself while clients of others waited
	keptInHand           // an acquire of several keys kept one that a client waited for, while it waited for another
	unanswered           // an operation had no reply although only other servers than its own were unavailable
	ownGrant             // an acquire waited for what it had been granted
	doubtful             // the outcome of an acquire stayed unknown although a majority was available
	shownFreeWait        // a waiter was not served although the servers had no hold
	wakeOutage           // acquits: the servers were unavailable
	wakePaused           // acquits: the waiter was paused
	wakeLate             // acquits: the reply came, or the client crashed
	wakeRights           // acquits: a permission was revoked
	wakeShared           // acquits: another client of the lock object may have sent its request
	wakeAhead            // acquits: at a fair lock, others came first
	wakeSeveral          // acquits: an acquire of several locks cannot start again, or has no time for all of them
	wakeSteps            // acquits: while a slot migrates, each of many requests may be slow
)

func wakeUpRules() []string {
	return []string{notWoken: "not-woken", notAdmitted: "not-admitted", tryRefused: "refused-try",
		tryWaited:    "waited-try",
		waitedInVain: "waited-in-vain", notReturned: "not-returned",
		requestStorm: "storm", dialStorm: "dials", wokenInVain: "herd",
		gaveUp: "gave-up", failedWait: "failed-wait", closedWait: "closed-wait", keptToItself: "no-turns",
		keptInHand: "hold-and-wait",
		unanswered: "unanswered", doubtful: "doubt", ownGrant: "own-grant", noReason: "no-reason",
		shownFreeWait: "shown-free",
		wakeOutage:    "outage", wakePaused: "waiter-paused", wakeLate: "replied-late",
		wakeRights: "no-permission", wakeShared: "shared-object", wakeAhead: "earlier-waiter", wakeSeveral: "several-locks",
		wakeSteps: "slow-requests"}
}

// checkWakeUp looks for waiters that were not served although the lock had been released: the wake-up was lost, or
// went to no waiter (redisson#4744: a reader is not woken when a writer releases). Free means that no client can have
// held it, by the longest possible intervals (see idle.go). A wait that timed out counts like one that was served in
// the end. What follows a hold that was not released is judged by recovery.
//
// An acquire with a wait has to return when its wait ends. The harness records that a reply did not come only long
// after that; if the client was running and the servers were available in the slack before, and no reply ever came, the
// lock waits without an end.
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
	timed := o.unhurried(wakeSteps)
	v.unservedWaits(timed, acquittals{notWoken, wakeOutage, wakePaused}, found, afterRelease, neverHeld)
	asked += v.unreturned(o, found)
	v.judgeRoom(timed, found)
	v.judgeTries(timed, found)
	v.judgeOwnGrants(timed, found)
	v.judgeShownFree(timed, found)
	v.judgeVain(o, found)
	v.judgeGivenUp(o, found)
	v.judgeNoReason(o, found)
	v.judgeClosings(o, found)
	v.judgeUnanswered(o, found)
	v.judgeDoubt(o, found)
	v.judgeTurns(o, found)
	v.judgeKept(o, found)
	v.judgeStorms(o, found)
	v.judgeDials(o, found)
	v.judgeHerds(o, found)
	r := found.result(WakeUp, v.wakeUpViolation)
	r.Counts = map[string]int64{"acquires": int64(asked), "free_times": int64(len(v.idleTimes(o.slack()).gaps))}
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
	var pauses map[int][]segment
	excuses := v.excusesOf(o)
	for _, u := range v.h.Unknown {
		s := &v.h.Spans[u.Span]
		if !u.Timeout || s.Op != history.OpAcquire {
			continue
		}
		if asked++; asked == 1 {
			pauses = v.clientPauses()
		}
		var without []segment
		if o.applies(wakeOutage) {
			without = excuses(concernOf(s)).away.windows
		}
		if o.applies(wakePaused) {
			without = merged(without, pauses[v.client(u.Span)])
		}
		last := segment{max(s.Call, u.Time-2*o.slack()), u.Time}
		if p := longestOutside(last, without); p.until-p.from <= o.slack() || o.applies(wakeLate) && v.heardOf(s, u.Time) {
			continue
		}
		found.add(finding{rule: notReturned, x: -1, y: u.Span, start: s.Call, end: u.Time})
	}
	return asked
}

// heardOf reports whether the client of s replied late or crashed: its process number is not used for anything else
// after the harness stopped waiting at t.
func (v *view) heardOf(s *history.Span, t time.Duration) bool {
	client := s.Process.Client(v.h.Clients)
	return slices.ContainsFunc(v.h.Notices, func(n history.Notice) bool {
		return n.Process.Client(v.h.Clients) == client && n.Time >= s.Call &&
			(n.F == history.Crash || n.Time >= t && strings.HasPrefix(n.F, history.LatePrefix))
	})
}

func (v *view) wakeUpViolation(f finding) Violation {
	if f.rule == notReturned {
		w := v.spanViolation(f.y, "an acquire returns when its wait ends", fmt.Sprintf("client %d requested %s at %s, and "+
			"the acquire had not returned by %s, long after the end of its wait", v.client(f.y),
			lockName(v.h.Keys[v.h.Spans[f.y].Key]), format.Instant(f.start), format.Instant(f.end)))
		w.Class = ""
		return w
	}
	switch f.rule {
	case notAdmitted, tryRefused:
		return v.roomViolation(f)
	case tryWaited:
		return v.tryViolation(f)
	case ownGrant:
		return v.ownGrantViolation(f)
	case shownFreeWait:
		return v.shownFreeViolation(f)
	case waitedInVain:
		return v.vainViolation(f)
	case gaveUp:
		return v.failureViolation(f)
	case doubtful:
		return v.doubtViolation(f)
	case unanswered:
		return v.unansweredViolation(f)
	case failedWait:
		return v.failedWaitViolation(f)
	case noReason:
		return v.noReasonViolation(f)
	case closedWait:
		return v.closedWaitViolation(f)
	case keptToItself:
		return v.turnsViolation(f)
	case keptInHand:
		return v.keptInHandViolation(f)
	case requestStorm, dialStorm, wokenInVain:
		return v.excessViolation(f)
	}
	text := fmt.Sprintf("client %d waited for %s %s although no client held it", v.client(f.y),
		lockName(v.h.Keys[v.h.Spans[f.y].Key]), segment{f.start, f.end}.text())
	w := v.spanViolation(f.y, "a waiter for a free lock gets it", text+", or ever had")
	if w.Class = ""; f.x < 0 {
		return w
	}
	x := &v.holds[f.x]
	by := v.involving("", x.span, f.y)
	w.Clients, w.Owners = by.Clients, by.Owners
	if x.endEvent >= 0 {
		w.Events = append([]int{int(x.endEvent)}, w.Events...)
	}
	w.Text = fmt.Sprintf("%s: client %d had released it by %s", text, w.Clients[0], format.Instant(x.freeBy))
	return w
}
