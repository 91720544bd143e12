package keeping

import (
	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// This file is about acquires that failed and say that they never held the lock, although a server had granted it.

// JudgeDeniedGrants finds the acquires and tries that failed without saying that a grant may have been undone, although
// a server kept a hold for their owner between their call and their return. Only the first operation of an owner at a
// key is judged, if no other of the owner begins before it has ended: a hold that a server keeps for it then is of that
// operation. If a fault or a forced release has removed the hold, the lock may take its absence for proof that there
// was none. A quorum is not judged: a grant by a minority is no grant.
func JudgeDeniedGrants(c *claims.Check) {
	s := c.Samples()
	if s == nil || !c.O.States(promise.RetriesRelease1500ms) || c.Quorum || c.O.MayBeDown > 0 {
		return
	}
	for _, l := range refs.All(s.Ledgers().All) {
		x := &c.H.Spans[l.Ops[0].Span]
		if !excuse.IsAcquire(x.Op) || x.Outcome != history.Fail || x.Undone || x.Part ||
			len(l.Ops) > 1 && c.H.Spans[l.Ops[1].Span].Call <= x.Return {
			continue
		}
		during := segment.Of(x.Call, x.Return)
		seen := s.FirstNamed(l.OwnerKey, during)
		if seen != nil && !claims.ReleasedIn(c.View, x, during) && !c.Touched(c.Dis, during) {
			c.Found.Add(finding.Finding{Rule: claims.DeniedGrant, X: refs.None, Y: l.Ops[0].Span, Start: seen.Time,
				End:  x.Return,
				Note: seen.Node})
		}
	}
}
