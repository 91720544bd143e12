package honesty

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeUnacknowledged finds grants, and changes of a semaphore or a latch, that succeeded while no replica could
// acknowledge them, at a lock that states that both wait for replicas. The fault may let acknowledgements through
// shortly before it is recorded as healed. Operations during other faults are not judged: another server may be the
// master, and a request whose reply was lost may be executed twice, the second time without a write.
func judgeUnacknowledged(c *claims.Check) {
	starved := starvedTimes(c)
	if !c.O.States(promise.AwaitsReplicas) || len(starved) == 0 {
		return
	}
	for i, s := range refs.All(c.H.Spans) {
		if s.Outcome != history.OK || !awaitsReplicas(s.Op) {
			continue
		}
		during := segment.Of(notBefore(c, s), segment.Later(s.Return, c.O.Slack()))
		for _, t := range starved {
			if t.From < during.From && during.Until < t.Until &&
				!c.All.Any(during, func(f *excuse.FaultTime) bool { return f.Segment != t }) {
				c.Found.Add(finding.Finding{Rule: claims.Unacknowledged, X: refs.None, Y: i, Start: s.Call, End: s.Return})
			}
		}
	}
}

// notBefore is an instant before which s, which succeeded, certainly had no effect: its invocation, or the release of a
// hold that excluded it.
func notBefore(c *claims.Check, s *history.Span) time.Duration {
	t := s.Call
	if !excuse.IsAcquire(s.Op) || c.H.Limit(s.Key) != 0 {
		return t
	}
	holds := c.ByKey[s.Key]
	n := sort.Search(len(holds), func(m int) bool { return c.Holds[holds[m]].From >= s.Return })
	for m := n - 1; m >= 0 && n-m <= ledger.MaxLookBack; m-- {
		if h := &c.Holds[holds[m]]; h.Owner != s.Owner && !h.Reader && h.Until <= s.Return && h.PromisedAt(h.Until) {
			t = max(t, h.Until)
		}
	}
	return t
}

// awaitsReplicas reports whether such a lock confirms an operation only when replicas have it.
func awaitsReplicas(op history.Op) bool {
	switch op {
	case history.OpResize, history.OpAddPermits, history.OpDropPermits, history.OpArm, history.OpCountDown:
		return true
	}
	return excuse.IsAcquire(op)
}

// starvedTimes are the times in which a master got no acknowledgement, except those in which a server changed its role.
// If the fault targets the link of one replica, others may acknowledge.
func starvedTimes(c *claims.Check) (starved []segment.Segment) {
	all := c.FaultTimes()
	for _, f := range all {
		if f.Unacknowledged && !strings.Contains(f.Target, ">") &&
			!slices.ContainsFunc(all, func(x excuse.FaultTime) bool {
				return x.ChangesRoles && f.From <= x.Until && x.Until < f.Until
			}) {
			starved = append(starved, f.Segment)
		}
	}
	return starved
}
