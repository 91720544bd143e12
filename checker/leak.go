package checker

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of leak.
const (
	keysLeft      = iota // keys at the servers
	waitersLeft          // entries in the wait queue
	permitsLeft          // permits still taken
	renewalsLeft         // a watchdog that still renews
	acquireLeaked        // an acquire of unknown outcome blocked the lock for longer than its lease
	keptLeft             // a hold at a server that its owner has not got
	leftBehind           // a hold at a server that its owner gave up, of a lock that repeats releases
	permitsKept          // more permits at a server than its clients can have
	requestsLeft         // requests about a lock that the process neither has nor requests
	channelsLeft         // subscriptions that nobody waits at
	leakHeld             // acquits: the lock may still be held
	leakOutage           // acquits: the servers were unavailable
	leakPaused           // acquits: the waiter was paused
	leakWaiting          // acquits: a client may still wait
)

func leakRules() []string {
	return []string{keysLeft: "keys", waitersLeft: "waiters", permitsLeft: "permits", renewalsLeft: "renewals",
		acquireLeaked: "acquire", keptLeft: "hold", leftBehind: "left-behind", permitsKept: "permits-kept",
		requestsLeft: "requests", channelsLeft: "subscriptions",
		leakHeld: "may-be-held", leakOutage: "outage",
		leakPaused:  "waiter-paused",
		leakWaiting: "may-wait"}
}

// checkLeak judges the remains of a run. The notes of f leftover list the data at the servers at the end (see
// history.Leftover). It is a leak if no client can hold the key anymore, by the longest possible intervals (see
// free_times.go), or, for the wait queue, if it has more entries than clients that can still wait. Another leak is an
// acquire of unknown outcome that took the lock although no owner knows of it: it may block others for the requested
// lease, and not longer (CURATOR-79: blocked forever).
func checkLeak(v *view, o Options) Result {
	found := newFindings(o)
	v.unservedWaits(o, waitRules{acquireLeaked, leakOutage, leakPaused}, found, afterUnknownAcquire)
	looked := 0
	for i := range v.h.Leftovers {
		if v.judgeLeft(int32(i), o, found) {
			looked++
		}
	}
	v.addWrongHolds(heldForNobody, keptLeft, found)
	v.addWrongHolds(heldLeftBehind, leftBehind, found)
	v.judgeMorePermits(o, found)
	v.judgeQuiet(o, found)
	v.judgeChannels(o, found)
	r := found.result(Leak, v.leakViolation)
	r.Counts = map[string]int64{"checked": int64(looked), "notes": int64(len(v.h.Leftovers))}
	switch {
	case r.Outcome == Violated:
	case looked > 0:
		r.Summary = fmt.Sprintf("nothing was left behind at the end, %s checked", format.Count(looked, "key"))
	case len(v.h.Leftovers) > 0:
		r.Outcome = NotApplicable
		r.Summary = maybeHeld
	default:
		r.Outcome, r.Summary = NotApplicable, notChecked
	}
	return r
}

// judgeLeft judges one note, and says whether it could be judged.
func (v *view) judgeLeft(i int32, o Options, found *findings) bool {
	l := &v.h.Leftovers[i]
	free := &v.freeTimes().free[l.Key]
	if free.last < 0 {
		return false // the key was not used
	}
	convict := func(rule int, bad bool) {
		if bad {
			found.add(finding{rule: rule, x: free.last, y: i, start: min(free.from, l.Time), end: l.Time})
		}
	}
	if o.applies(leakHeld) && free.from > l.Time { // only the queue can be judged, which has the holder too in some locks
		convict(waitersLeft, o.applies(leakWaiting) && l.Waiters > 1+v.waitingAt(l.Key, l.Time, o.slack()))
		return false
	}
	convict(keysLeft, len(l.Keys) > 0)
	convict(permitsLeft, l.Permits > 0)
	convict(renewalsLeft, l.Renewals > 0)
	convict(waitersLeft, l.Waiters > 0 && (!o.applies(leakWaiting) || l.Waiters > v.waitingAt(l.Key, l.Time, 0)))
	return true
}

// waitingAt is how many acquires of a key may still be in flight at t, or were within slack before.
func (v *view) waitingAt(key int32, t, slack time.Duration) (n int) {
	crashed := v.crashes()
	for _, s := range refs(v.h.Spans) {
		at, dead := crashed[s.Process.Client(v.h.Clients)]
		if s.Key == key && s.Op == history.OpAcquire && s.Call <= t && s.Return > t-slack && (!dead || at > t-slack) {
			n++
		}
	}
	return n
}

func (v *view) leakViolation(f finding) Violation {
	switch f.rule {
	case keptLeft, leftBehind:
		return v.wrongHoldViolation(f)
	case requestsLeft, channelsLeft:
		return v.excessViolation(f)
	case permitsKept:
		return v.word(f, wording{"", nothing, "a server counts no more permits as taken than clients have",
			"at $start $note"})
	case acquireLeaked:
		return v.leakedViolation(f)
	}
	l := &v.h.Leftovers[f.y]
	last := v.spanOf(l.Key, f.x)
	w := v.involving("", last)
	w.Events = []int{int(v.h.Spans[last].Invoked), int(l.Index)}
	leaked := ""
	switch f.rule {
	case keysLeft:
		w.Rule, leaked = "a lock that is not held leaves no key behind", keysOf(l.Keys, w.Key)
	case waitersLeft:
		w.Rule, leaked = "a wait queue has no entry without a waiter", format.Count(l.Waiters, "queue entry")
	case permitsLeft:
		w.Rule, leaked = "all permits are available when none is held", format.Count(l.Permits, "permit")
	case renewalsLeft:
		w.Rule, leaked = "no lease is renewed that is not held", format.Count(l.Renewals, "renewal")
	}
	if f.rule == waitersLeft && f.start == f.end {
		w.Text = fmt.Sprintf("%s of %s at %s, more than clients that may have waited then", leaked, lockName(w.Key),
			format.Instant(l.Time))
		return w
	}
	w.Text = fmt.Sprintf("%s of %s left behind at %s%s", leaked, lockName(w.Key), format.Instant(l.Time),
		v.hadEnded(last, f.start))
	return w
}

// keysOf names keys of a lock: "lock:{orders}:queue of orders". A key that is named after the lock is not named twice.
func keysOf(keys []string, lock string) string {
	if len(keys) == 1 && keys[0] == lock {
		return "the key"
	}
	return strings.Join(keys, ", ")
}

func (v *view) leakedViolation(f finding) Violation {
	x := &v.h.Spans[f.x]
	if x.Undone {
		return v.word(f, wording{"", otherOp, "a grant that was undone blocks the lock no longer",
			"a grant of $lock to client $other was undone by $since, but client $client waited for $length longer"})
	}
	f.note = either(v.fair && x.Op == history.OpAcquire, "a grant to it", "its lease")
	return v.word(f, wording{"", otherOp, "an acquire of unknown outcome blocks the lock no longer than its lease",
		"client $other requested $lock at $asked and " + either(x.Outcome == history.Fail, "was paused in the acquire",
			"never learned the outcome") + "; $note would have ended by $start, but client $client waited for $length longer"})
}
