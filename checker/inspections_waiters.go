package checker

import (
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file compares how many waiters a lock counts with how many acquires are in flight.

// deadWaiter is for how long a waiter whose client has died may be counted (docs/reference/protocol.md).
const deadWaiter = 6 * time.Second

// judgeWaiters judges the counts of waiters. An earlier fault that may have changed the servers' data excuses the lock.
func (c *honestyCheck) judgeWaiters() {
	crashed := c.crashes()
	for i, s := range refsAt(c.h.Spans, c.rare) {
		if s.Op != history.OpCountWaiters || s.Outcome != history.OK || c.touched(c.all, segment{0, s.Return}) {
			continue
		}
		certain, possible := c.waitersIn(s, crashed)
		switch {
		case s.Count > possible:
			c.showed(waitersBeyond, none, i, fmt.Sprintf("at most %d", possible))
		case s.Count < certain:
			c.showed(waitersMissing, none, i, fmt.Sprintf("at least %d", certain))
		}
	}
}

// waitersIn are the numbers of acquires that certainly waited during all of a count of waiters, and that can have
// waited. An acquire certainly waited if it was in flight while another owner certainly held the lock, undisturbed.
func (c *honestyCheck) waitersIn(s *history.Span, crashed map[int]time.Duration) (certain, possible int32) {
	n, held := c.certainHolder(s)
	for _, x := range refs(c.h.Spans) {
		if x.Call > s.Return {
			break
		}
		if x.Key != s.Key || !isAcquire(x.Op) || c.leftBy(x, crashed) < s.Call {
			continue
		}
		possible++
		during := segment{x.Call, s.Return}
		if held && x.Op == history.OpAcquire && c.holds[n].owner != x.Owner && x.Outcome != history.Info &&
			x.Return > s.Return && later(x.Call, c.o.queueDelay()) < s.Call && c.holds[n].from < x.Call &&
			!c.all.any(during, func(*faultTime) bool { return true }) {
			certain++
		}
	}
	return certain, possible
}

// leftBy is when an acquire certainly had left the queue: when it returned or, if its client crashed, some time later.
// A try has a place in the queue only while it is in flight.
func (c *honestyCheck) leftBy(x *history.Span, crashed map[int]time.Duration) time.Duration {
	if x.Outcome != history.Info {
		return x.Return
	}
	if t, did := crashed[x.Process.Client(c.h.Clients)]; did && t >= x.Call {
		return later(t, deadWaiter+c.o.slack())
	}
	return never
}
