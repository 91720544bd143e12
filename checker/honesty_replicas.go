package checker

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// judgeUnacknowledged finds grants, and changes of a semaphore or a latch, that succeeded while no replica could
// acknowledge them, at a lock that states that both wait for replicas. The fault may let acknowledgements through
// shortly before it is recorded as healed. Operations during other faults are not judged: another server may be the
// master, and a request whose reply was lost may be executed twice, the second time without a write.
func (c *honestyCheck) judgeUnacknowledged() {
	starved := c.starvedTimes()
	if !c.o.states(promise.AwaitsReplicas) || len(starved) == 0 {
		return
	}
	for i, s := range refs(c.h.Spans) {
		if s.Outcome != history.OK || !awaitsReplicas(s.Op) {
			continue
		}
		during := segment{c.notBefore(s), later(s.Return, c.o.slack())}
		for _, t := range starved {
			if t.from < during.from && during.until < t.until &&
				!c.all.any(during, func(f *faultTime) bool { return f.segment != t }) {
				c.found.add(finding{rule: unacknowledged, x: none, y: i, start: s.Call, end: s.Return})
			}
		}
	}
}

// notBefore is an instant before which s, which succeeded, certainly had no effect: its invocation, or the release of a
// hold that excluded it.
func (c *honestyCheck) notBefore(s *history.Span) time.Duration {
	t := s.Call
	if !isAcquire(s.Op) || c.h.Limit(s.Key) != 0 {
		return t
	}
	holds := c.byKey[s.Key]
	n := sort.Search(len(holds), func(m int) bool { return c.holds[holds[m]].from >= s.Return })
	for m := n - 1; m >= 0 && n-m <= maxLookBack; m-- {
		if h := &c.holds[holds[m]]; h.owner != s.Owner && !h.reader && h.until <= s.Return && h.promisedAt(h.until) {
			t = max(t, h.until)
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
	return isAcquire(op)
}

// starvedTimes are the times in which a master got no acknowledgement, except those in which a server changed its role.
// If the fault targets the link of one replica, others may acknowledge.
func (c *honestyCheck) starvedTimes() (starved []segment) {
	all := c.faultTimes()
	for _, f := range all {
		if f.unacknowledged && !strings.Contains(f.target, ">") &&
			!slices.ContainsFunc(all, func(x faultTime) bool {
				return x.changesRoles && f.from <= x.until && x.until < f.until
			}) {
			starved = append(starved, f.segment)
		}
	}
	return starved
}
