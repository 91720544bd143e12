package checker

import (
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// This file is about acquires that failed and say that they never held the lock, although a server had granted it.

// judgeDeniedGrants finds the acquires and tries that failed without saying that a grant may have been undone, although
// a server kept a hold for their owner between their call and their return. Only the first operation of an owner at a
// key is judged, if no other of the owner begins before it has ended: a hold that a server keeps for it then is of that
// operation. If a fault or a forced release has removed the hold, the lock may take its absence for proof that there
// was none. A quorum is not judged: a grant by a minority is no grant.
func (c *honestyCheck) judgeDeniedGrants() {
	s := c.samples()
	if s == nil || !c.o.states(promise.RetriesRelease1500ms) || c.quorum || c.o.MayBeDown > 0 {
		return
	}
	for _, l := range refs(s.ledgers().all) {
		x := &c.h.Spans[l.ops[0].span]
		if !isAcquire(x.Op) || x.Outcome != history.Fail || x.Undone || x.Part ||
			len(l.ops) > 1 && c.h.Spans[l.ops[1].span].Call <= x.Return {
			continue
		}
		during := segment{x.Call, x.Return}
		seen := s.firstNamed(l.ownerKey, during)
		if seen != nil && !c.releasedIn(x, during) && !c.touched(c.dis, during) {
			c.found.add(finding{rule: deniedGrant, x: none, y: l.ops[0].span, start: seen.Time, end: x.Return,
				note: seen.Node})
		}
	}
}

// firstNamed is the first sample of an interval in which a server has a hold of an owner; nil if there is none.
func (s *nodeSamples) firstNamed(at ownerKey, during segment) (first *history.Sample) {
	for node, samples := range s.nodes {
		all := s.namedIn(node, at, during.from)
		if len(all) == 0 {
			continue
		}
		if x := &s.h.Samples[samples[all[0].place]]; x.Time < during.until && (first == nil || x.Time < first.Time) {
			first = x
		}
	}
	return first
}

// sampledBetween reports whether a node was sampled within an interval.
func (s *nodeSamples) sampledBetween(node string, during segment) bool {
	return slices.ContainsFunc(s.h.Samples, func(x history.Sample) bool {
		return x.Node == node && x.Sent > during.from && x.Time < during.until
	})
}
