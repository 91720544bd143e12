package reports

import "github.com/lockchaos/lockchaos/history"

// findMovedAddress: the master's address had moved to another node, and a client that still reached the old master was
// granted the lock by it.
func findMovedAddress(q *inquiry) *cause {
	if !q.promoted() {
		return nil
	}
	p := q.p
	f := firstOf(q.r.faults, func(f *injection) bool {
		return f.does(history.FaultMoves, history.ObjectAddress) && f.inject <= p.a.From && f.heal >= p.b.From
	})
	if f == nil {
		return nil
	}
	old, now, byOld, byNow := p.granterA, p.granterB, p.a, p.b
	if firstOf(q.r.witness.during(old, 0, f.inject), isMaster) == nil {
		old, now, byOld, byNow = p.granterB, p.granterA, p.b, p.a
	}
	return blame(f, "the master's address moved from %s to %s at %s (%s), but %s still reached %s and was "+
		"granted it there at %s; %s granted it to %s at %s", old, now, f.injected(), f, byOld, old, byOld.granted(), now,
		byNow, byNow.granted())
}
