package cause

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// findMovedAddress: the master's address had moved to another node, and a client that still reached the old master was
// granted the lock by it.
func findMovedAddress(q *inquiry) *Cause {
	if !q.promoted() {
		return nil
	}
	p := q.p
	f := evidence.FirstOf(q.r.Faults, func(f *evidence.Fault) bool {
		return f.Does(history.FaultMoves, history.ObjectAddress) && f.Inject <= p.A.From && f.Heal >= p.B.From
	})
	if f == nil {
		return nil
	}
	old, now, byOld, byNow := p.ByA.Node, p.ByB.Node, p.A, p.B
	if evidence.FirstOf(q.r.Witness.During(old, 0, f.Inject), evidence.IsMaster) == nil {
		old, now, byOld, byNow = p.ByB.Node, p.ByA.Node, p.B, p.A
	}
	return blame(f, "the master's address moved from %s to %s at %s (%s), but %s still reached %s and was "+
		"granted it there at %s; %s granted it to %s at %s", old, now, f.Injected(), f, byOld, old, byOld.GrantedAt(), now,
		byNow, byNow.GrantedAt())
}
