// Package leak judges remains at the end of a run: keys, waiters, permits, renewals and requests.
package leak

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/cost"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/servers"
	"github.com/lockchaos/lockchaos/checker/internal/waiting"
	"github.com/lockchaos/lockchaos/checker/property"
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

func Rules() finding.Rules {
	return finding.Rules{
		keysLeft: {Name: "keys"}, waitersLeft: {Name: "waiters"}, permitsLeft: {Name: "permits"},
		renewalsLeft: {Name: "renewals"}, keptLeft: {Name: "hold"},
		acquireLeaked: {Name: "acquire", X: finding.OtherOp,
			Sentence: "an acquire of unknown outcome blocks the lock no longer than its lease",
			Text: "client $other requested $lock at $asked and $note would have ended by $start, but client $client waited " +
				"for $length longer"},
		permitsKept: {Name: "permits-kept", Sentence: "a server counts no more permits as taken than clients have",
			Text: "at $start $note"},
		leftBehind: {Name: "left-behind"}, requestsLeft: {Name: "requests"},
		channelsLeft: {Name: "subscriptions"}, leakHeld: {Name: "may-be-held"}, leakOutage: {Name: "outage"},
		leakPaused: {Name: "waiter-paused"}, leakWaiting: {Name: "may-wait"},
	}
}

// Check judges the remains of a run. The notes of f leftover list the data at the servers at the end (see
// history.Leftover). It is a leak if no client can hold the key anymore, by the longest possible intervals (see
// package bounds), or, for the wait queue, if it has more entries than clients that can still wait. Another leak is an
// acquire of unknown outcome that took the lock although no owner knows of it: it may block others for the requested
// lease, and not longer (CURATOR-79: blocked forever).
func Check(v *bounds.View, o given.Options) property.Result {
	found := finding.New(o)
	waiting.UnservedWaits(v, o, waiting.WaitRules{Convict: acquireLeaked, Outage: leakOutage, Paused: leakPaused}, found,
		bounds.AfterUnknownAcquire)
	looked := 0
	for i := range v.H.Leftovers {
		if judgeLeft(v, int32(i), o, found) {
			looked++
		}
	}
	finding.AddWrongHolds(v, servers.HeldForNobody, keptLeft, found)
	finding.AddWrongHolds(v, servers.HeldLeftBehind, leftBehind, found)
	judgeMorePermits(v, o, found)
	judgeQuiet(v, o, found)
	judgeChannels(v, o, found)
	r := found.Result(property.Leak, func(f finding.Finding) property.Violation { return leakViolation(v, f) })
	r.Counts = map[string]int64{"checked": int64(looked), "notes": int64(len(v.H.Leftovers))}
	switch {
	case r.Outcome == property.Violated:
	case looked > 0:
		r.Summary = fmt.Sprintf("nothing was left behind at the end, %s checked", format.Count(looked, "key"))
	case len(v.H.Leftovers) > 0:
		r.Outcome = property.NotApplicable
		r.Summary = finding.MaybeHeld
	default:
		r.Outcome, r.Summary = property.NotApplicable, finding.NotChecked
	}
	return r
}

// judgeLeft judges one note, and says whether it could be judged.
func judgeLeft(v *bounds.View, i int32, o given.Options, found *finding.Findings) bool {
	l := &v.H.Leftovers[i]
	free := &v.FreeTimes().Free[l.Key]
	if free.Last < 0 {
		return false // the key was not used
	}
	convict := func(rule int, bad bool) {
		if bad {
			found.Add(finding.Finding{Rule: rule, X: free.Last, Y: i, Start: min(free.From, l.Time), End: l.Time})
		}
	}
	if o.Applies(leakHeld) && free.From > l.Time { // only the queue can be judged, which has the holder too in some locks
		convict(waitersLeft, o.Applies(leakWaiting) && l.Waiters > 1+waitingAt(v, l.Key, l.Time, o.Slack()))
		return false
	}
	convict(keysLeft, len(l.Keys) > 0)
	convict(permitsLeft, l.Permits > 0)
	convict(renewalsLeft, l.Renewals > 0)
	convict(waitersLeft, l.Waiters > 0 && (!o.Applies(leakWaiting) || l.Waiters > waitingAt(v, l.Key, l.Time, 0)))
	return true
}

// waitingAt is how many acquires of a key may still be in flight at t, or were within slack before.
func waitingAt(v *bounds.View, key int32, t, slack time.Duration) (n int) {
	crashed := v.Crashes()
	for _, s := range refs.All(v.H.Spans) {
		at, dead := crashed[s.Process.Client(v.H.Clients)]
		if s.Key == key && s.Op == history.OpAcquire && s.Call <= t && s.Return > t-slack && (!dead || at > t-slack) {
			n++
		}
	}
	return n
}

func leakViolation(v *bounds.View, f finding.Finding) property.Violation {
	switch f.Rule {
	case keptLeft, leftBehind:
		return finding.WrongHoldViolation(v, f)
	case requestsLeft, channelsLeft:
		return cost.ExcessViolation(v, f)
	case permitsKept:
		return finding.Word(v, f, Rules()[f.Rule])
	case acquireLeaked:
		return leakedViolation(v, f)
	}
	l := &v.H.Leftovers[f.Y]
	last := v.SpanOf(l.Key, f.X)
	w := finding.Involving(v, "", last)
	w.Events = []int{int(v.H.Spans[last].Invoked), int(l.Index)}
	leaked := ""
	switch f.Rule {
	case keysLeft:
		w.Rule, leaked = "a lock that is not held leaves no key behind", keysOf(l.Keys, w.Key)
	case waitersLeft:
		w.Rule, leaked = "a wait queue has no entry without a waiter", format.Count(l.Waiters, "queue entry")
	case permitsLeft:
		w.Rule, leaked = "all permits are available when none is held", format.Count(l.Permits, "permit")
	case renewalsLeft:
		w.Rule, leaked = "no lease is renewed that is not held", format.Count(l.Renewals, "renewal")
	}
	if f.Rule == waitersLeft && f.Start == f.End {
		w.Text = fmt.Sprintf("%s of %s at %s, more than clients that may have waited then", leaked, finding.LockName(w.Key),
			format.Instant(l.Time))
		return w
	}
	w.Text = fmt.Sprintf("%s of %s left behind at %s%s", leaked, finding.LockName(w.Key), format.Instant(l.Time),
		waiting.HadEnded(v, last, f.Start))
	return w
}

// keysOf names keys of a lock: "lock:{orders}:queue of orders". A key that is named after the lock is not named twice.
func keysOf(keys []string, lock string) string {
	if len(keys) == 1 && keys[0] == lock {
		return "the key"
	}
	return strings.Join(keys, ", ")
}

func leakedViolation(v *bounds.View, f finding.Finding) property.Violation {
	x, rule := &v.H.Spans[f.X], Rules()[f.Rule]
	if x.Undone {
		rule.Sentence = "a grant that was undone blocks the lock no longer"
		rule.Text = "a grant of $lock to client $other was undone by $since, but client $client waited for $length longer"
	}
	f.Note = finding.Either(x.Outcome == history.Fail, "was paused in the acquire", "never learned the outcome") + "; " +
		finding.Either(v.Fair && x.Op == history.OpAcquire, "a grant to it", "its lease")
	return finding.Word(v, f, rule)
}
