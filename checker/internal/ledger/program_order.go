package ledger

import (
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/history"
)

// ProgramOrder is the certainty of the order of one owner's operations.
type ProgramOrder uint8

const (
	OrdSequential   ProgramOrder = iota // one after the other
	OrdAfterUnknown                     // some followed one of unknown outcome, which may still take effect
	OrdUnknown                          // which holds it had is unknown, so they are not judged: see UnknownCause
)

// Orders finds the program order of each owner. It is known for OrdSequential, and the exactness of the interval
// sweeps depends on it (see package exclusion). An owner that acquires after a release of unknown outcome has the
// order OrdUnknown: that release may arrive late and end the new hold.
func Orders(h *history.History) ([]ProgramOrder, []UnknownCause) {
	of, why := make([]ProgramOrder, len(h.Owners)), make([]UnknownCause, len(h.Owners))
	ends := make([]int32, len(h.Owners))           // latest completion of known outcome
	unknown := make([]ProgramOrder, len(h.Owners)) // the order after the next acquire
	for _, s := range refs.All(h.Spans) {
		if !excuse.IsLockOp(s) {
			continue
		}
		o, release := &of[s.Owner], s.Op == history.OpRelease
		switch {
		case s.Invoked < ends[s.Owner] && !s.Part:
			*o, why[s.Owner] = OrdUnknown, twoAtOnce
		case release || s.Outcome == history.Fail:
			*o = max(*o, min(OrdAfterUnknown, unknown[s.Owner]))
		default:
			if unknown[s.Owner] == OrdUnknown && *o != OrdUnknown {
				why[s.Owner] = lateRelease
			}
			*o = max(*o, unknown[s.Owner])
		}
		switch {
		case s.Outcome != history.Info:
			ends[s.Owner] = max(ends[s.Owner], s.Ended)
		case release:
			unknown[s.Owner] = OrdUnknown
		default:
			unknown[s.Owner] = max(unknown[s.Owner], OrdAfterUnknown)
		}
	}
	return of, why
}
