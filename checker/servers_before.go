package checker

import (
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// This file is about acquires that failed and say that they never held the lock, although a server had granted it.

// heldBefore is an acquire that failed, and a sample of a server that kept the lock for its owner meanwhile.
type heldBefore struct {
	span int32
	seen *history.Sample
}

// heldBefore finds the acquires and tries that failed without saying that a grant may have been undone, although a
// server kept a hold for their owner between their call and their return. Only the first operation of an owner at a key
// is judged, if no other of the owner begins before it has ended: what a server keeps for it then is of that operation.
// What finds nothing to take back, because a fault or a forced release has removed it, may take it for proof that there
// was nothing. Of a quorum nothing is judged: what a minority has granted is no grant.
func (s *servers) heldBefore(o Options) (all []heldBefore) {
	if !o.Repeats || s.quorum || o.MayBeDown > 0 {
		return nil
	}
	dis := s.disturbances(o)
	for at, l := range s.ledgers() { // in any order: findings are sorted
		x := &s.h.Spans[l.ops[0]]
		if !isAcquire(x.Op) || x.Outcome != history.Fail || x.Undone || x.Part ||
			len(l.ops) > 1 && s.h.Spans[l.ops[1]].Call <= x.Return {
			continue
		}
		during := segment{x.Call, x.Return}
		seen := s.firstNamed(at, during)
		if seen == nil || s.releasedIn(x, during) ||
			o.applies(honestData) && dis.touch(during, anyClient, history.AffectsData) {
			continue
		}
		all = append(all, heldBefore{l.ops[0], seen})
	}
	return all
}

// firstNamed is the first sample of an interval in which a server has a hold of an owner; nil if there is none.
func (s *servers) firstNamed(at ownerKey, during segment) (first *history.Sample) {
	for node := range s.nodes {
		for _, i := range s.between(node, during.from, during.until) {
			x := &s.h.Samples[i]
			if state, _ := s.keeps(x, at.owner, at.key); state == present && (first == nil || x.Time < first.Time) {
				first = x
			}
		}
	}
	return first
}

// judgeHeldBefore adds the acquires that say that they never held the lock, and had been granted it.
func (c *honestyCheck) judgeHeldBefore() {
	seen := c.servers()
	if seen == nil {
		return
	}
	for _, b := range seen.heldBefore(c.o) {
		c.before = append(c.before, b)
		c.found.add(finding{rule: deniedGrant, x: int32(len(c.before) - 1), y: b.span, start: b.seen.Time,
			end: c.h.Spans[b.span].Return})
	}
}

// beforeViolation describes a finding of this file.
func (c *honestyCheck) beforeViolation(f finding) Violation {
	b := &c.before[f.x]
	w := c.spanViolation(f.y, "an acquire that fails says so if it may have held the lock before", "")
	w.Class = ""
	w.Text = fmt.Sprintf("the acquire of %s by client %d failed at %s as one that never held it, although %s kept it for "+
		"that owner at %s", lockName(w.Key), w.Clients[0], format.Instant(c.h.Spans[b.span].Return), b.seen.Node,
		format.Instant(b.seen.Time))
	return w
}
