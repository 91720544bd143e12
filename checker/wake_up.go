package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of wake-up.
const (
	notWoken   = iota // a waiter was not served although the lock was free
	wakeOutage        // acquits: the servers were unavailable
	wakePaused        // acquits: the waiter was paused
)

func wakeUpRules() []string {
	return []string{notWoken: "not-woken", wakeOutage: "outage", wakePaused: "waiter-paused"}
}

// checkWakeUp looks for waiters that were not served although the lock had been released: the wake-up was lost, or
// went to no waiter (redisson#4744: a reader is not woken when a writer releases). Free means that no client can have
// held it, by the longest possible intervals (see idle.go). A wait that timed out counts like one that was served in
// the end. What follows a hold that was not released is judged by recovery.
//
// It is sound up to the slack, which has to be longer than a round trip and than the polling interval of a lock that
// polls.
func checkWakeUp(v *view, o Options) Result {
	found := newFindings(o)
	asked := len(v.h.TimedOut)
	for i := range v.holds {
		if v.h.Spans[v.holds[i].span].Op == history.OpAcquire {
			asked++
		}
	}
	v.unservedWaits(o, acquittals{notWoken, wakeOutage, wakePaused}, found, afterRelease, neverHeld)
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
	text := fmt.Sprintf("client %d waited for %s for %s (%s to %s) although no client held it", v.client(f.y),
		lockName(v.h.Keys[v.h.Spans[f.y].Key]), format.Duration(f.end-f.start), format.Instant(f.start),
		format.Instant(f.end))
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
