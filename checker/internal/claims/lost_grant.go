package claims

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// GrantedWithin is the first hold of another owner that excludes h and was granted in s; none if there is none.
func GrantedWithin(v *bounds.View, h *ledger.Hold, s segment.Segment) int32 {
	for i, g := range refs.At(v.Holds, v.GrantedAfter(h.Key, s.From)) {
		switch {
		case g.From >= s.Until:
			return refs.None
		case g.Owner != h.Owner && !(g.Reader && h.Reader):
			return i
		}
	}
	return refs.None
}

// ReleasedIn reports whether another release than failed, by its owner or by force, may have taken effect in s.
func ReleasedIn(v *bounds.View, failed *history.Span, s segment.Segment) bool {
	for _, x := range v.InFlight(s) {
		own := x.Op == history.OpRelease && x.Owner == failed.Owner && x != failed
		if x.Key == failed.Key && (own || x.Op == history.OpForceRelease) && x.Outcome != history.Fail {
			return true
		}
	}
	return false
}

// LostGrant is a grant that was lost.
type LostGrant struct {
	Hold  int32
	Seen  time.Duration // when a sample or a reply showed the loss
	Until time.Duration // the end of the promise
	Node  string        // whose sample shows it; "": a reply does
	Asked bool          // another owner was granted the lock by then
}
