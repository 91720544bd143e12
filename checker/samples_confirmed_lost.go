package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file compares the replies to releases and renewals with the servers' record of the hold before.

// judgeConfirmedLost finds the releases and renewals that succeeded although the only master had lost the hold before
// they were invoked: the reply must be that it is not held, whatever removed it. Only owners are judged whose
// operations have known outcomes, and which did nothing else with the lock in between.
func (c *honestyCheck) judgeConfirmedLost() {
	s := c.samples()
	if s == nil || c.o.MayBeDown > 0 {
		return
	}
	for _, l := range refs(s.ledgers().all) {
		for n := 1; n < len(l.ops); n++ {
			op, before := &s.h.Spans[l.ops[n].span], &s.h.Spans[l.ops[n-1].span]
			if op.Op != history.OpRelease && op.Op != history.OpRenew || op.Outcome != history.OK || op.Part ||
				l.ops[n-1].depth < 1 || !granted(before) {
				continue
			}
			if x := s.lostBetween(l.ownerKey, before.Call, segment{before.Return, op.Call}, c.o); x != nil {
				c.found.add(finding{rule: confirmedLost, x: none, y: l.ops[n].span, start: x.Time, end: op.Return,
					note: x.Node})
			}
		}
	}
}

// granted reports whether an operation gave its owner a hold, or a new lease of one.
func granted(s *history.Span) bool {
	return s.Outcome == history.OK && s.Op != history.OpRelease && s.Op != history.OpForceRelease
}

// lostBetween is the first sample inside a time in which a node does not have a hold that it had in an earlier one. The
// earlier one may be from when the request for it was in flight: asked is when it was invoked.
// Samples of a semaphore name no owner: if a fault removed its key, holds that it keeps elsewhere may be in force.
func (s *nodeSamples) lostBetween(at ownerKey, asked time.Duration, during segment, o Options) *history.Sample {
	changed := o.applies(honestData) && s.allDisturbances(o).mayAffect(during, anyClient, history.AffectsData)
	for node := range s.nodes {
		had := absent
		for i, x := range refsAt(s.h.Samples, s.between(node, asked, during.until)) {
			state, _ := s.presenceOf(i, at.owner, at.key)
			after := x.Sent >= during.from
			if state == present || after && state != absent {
				had = state
			} else if after && had != absent && (had == present || !changed) &&
				!s.otherMaster(node, at.key, x.Time, o.slack()) && !s.heldElsewhere(node, at.key, x.Time, o.slack()) {
				return x
			}
		}
	}
	return nil
}

// heldElsewhere reports whether another node has a hold of a key within slack of t: a slot that migrates takes its keys
// along.
func (s *nodeSamples) heldElsewhere(node int, key int32, t, slack time.Duration) bool {
	for other := range s.nodes {
		if other == node {
			continue
		}
		for _, i := range s.between(other, t-slack, later(t, slack)) {
			if _, held := s.valueAt(i, key); held {
				return true
			}
		}
	}
	return false
}
