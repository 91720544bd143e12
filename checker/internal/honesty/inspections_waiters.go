package honesty

import (
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// This file compares how many waiters a lock counts with how many acquires are in flight.

// deadWaiter is for how long a waiter whose client has died may be counted (docs/reference/protocol.md).
const deadWaiter = 6 * time.Second

// judgeWaiters judges the counts of waiters. An earlier fault that may have changed the servers' data excuses the lock.
func judgeWaiters(c *claims.Check) {
	crashed := c.Crashes()
	for i, s := range refs.At(c.H.Spans, c.Rare) {
		if s.Op != history.OpCountWaiters || s.Outcome != history.OK || c.Touched(c.All, segment.Of(0, s.Return)) {
			continue
		}
		certain, possible := waitersIn(c, s, crashed)
		switch {
		case s.Count > possible:
			showed(c, claims.WaitersBeyond, refs.None, i, fmt.Sprintf("at most %d", possible))
		case s.Count < certain:
			showed(c, claims.WaitersMissing, refs.None, i, fmt.Sprintf("at least %d", certain))
		}
	}
}

// waitersIn are the numbers of acquires that certainly waited during all of a count of waiters, and that can have
// waited. An acquire certainly waited if it was in flight while another owner certainly held the lock, undisturbed.
func waitersIn(c *claims.Check, s *history.Span, crashed map[int]time.Duration) (certain, possible int32) {
	n, held := certainHolder(c, s)
	for _, x := range refs.All(c.H.Spans) {
		if x.Call > s.Return {
			break
		}
		if x.Key != s.Key || !excuse.IsAcquire(x.Op) || leftBy(c, x, crashed) < s.Call {
			continue
		}
		possible++
		during := segment.Of(x.Call, s.Return)
		if held && x.Op == history.OpAcquire && c.Holds[n].Owner != x.Owner && x.Outcome != history.Info &&
			x.Return > s.Return && segment.Later(x.Call, c.O.QueueDelay()) < s.Call && c.Holds[n].From < x.Call &&
			!c.All.Any(during, func(*excuse.FaultTime) bool { return true }) {
			certain++
		}
	}
	return certain, possible
}

// leftBy is when an acquire certainly had left the queue: when it returned or, if its client crashed, some time later.
// A try has a place in the queue only while it is in flight.
func leftBy(c *claims.Check, x *history.Span, crashed map[int]time.Duration) time.Duration {
	if x.Outcome != history.Info {
		return x.Return
	}
	if t, did := crashed[x.Process.Client(c.H.Clients)]; did && t >= x.Call {
		return segment.Later(t, deadWaiter+c.O.Slack())
	}
	return segment.Never
}
