package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of wake-up.
const (
	sleptOn    = iota // a waiter slept on although the lock was free
	wakeAway          // acquits: the servers were not there
	wakePaused        // acquits: the waiter stood still
)

func wakeUpRules() []string {
	return []string{sleptOn: "slept-on", wakeAway: "servers-away", wakePaused: "waiter-paused"}
}

// checkWakeUp looks for waiters that slept on although the lock had been given
// back: the signal that should have woken them was lost, or came to nobody
// (redisson#4744: a reader sleeps on after a writer has left). Free means that nobody can have held it, by
// the largest intervals (see idle.go); a wait that ended in vain counts like one
// that ended with the lock. What follows a hold that was not given back is
// recovery's business.
//
// It is sound up to the slack, which has to be longer than a round trip and
// than the time between two looks of a lock that polls.
func checkWakeUp(v *view, o Options) Result {
	found := newFindings(o)
	asked := len(v.h.TimedOut)
	for i := range v.holds {
		if v.h.Spans[v.holds[i].span].Op == history.OpAcquire {
			asked++
		}
	}
	v.unservedWaits(o, acquittals{sleptOn, wakeAway, wakePaused}, found, afterRelease, neverHeld)
	r := found.result(WakeUp, v.wakeUpViolation)
	r.Counts = map[string]int64{"acquires": int64(asked), "free_times": int64(len(v.idleTimes(o.slack()).gaps))}
	switch {
	case r.Outcome == Violated:
	case asked == 0:
		r.Outcome, r.Summary = NotApplicable, "no client waited for the lock"
	default:
		r.Summary = fmt.Sprintf("no waiter waited for more than %s while the lock was free", format.Duration(o.slack()))
	}
	return r
}

func (v *view) wakeUpViolation(f finding) Violation {
	w := v.waitViolation(f)
	w.Rule = "a waiter for a free lock gets it"
	w.Text = fmt.Sprintf("client %d waited for %s for %s (%s to %s) although no client held it", w.Clients[0],
		lockName(w.Key), format.Duration(f.end-f.start), format.Instant(f.start), format.Instant(f.end))
	if f.x < 0 {
		w.Text += ", or ever had"
		return w
	}
	x := &v.holds[f.x]
	w.Clients = append([]int{v.client(x.span)}, w.Clients...)
	w.Owners = append([]string{v.h.Owners[x.owner]}, w.Owners...)
	if x.endEvent >= 0 {
		w.Events = append([]int{int(x.endEvent)}, w.Events...)
	}
	w.Text += fmt.Sprintf(": client %d had released it by %s", w.Clients[0], format.Instant(x.freeBy))
	return w
}
