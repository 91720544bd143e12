package keeping

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// This file compares the permits that a server keeps for a semaphore with its clients' permits. Samples do not show the
// owners of permits: only sums are compared. A key that several masters have kept is not judged, because it is not
// known whose state counts.

// FewerPermits finds, for each semaphore, a sample with fewer permits than its clients certainly held and were
// promised. A promise does not count if a fault may have changed the servers' data since it was requested.
func FewerPermits(c *claims.Check) {
	seen := c.Samples()
	if seen == nil {
		return
	}
	key, next, open := refs.None, 0, []int32(nil)
	seen.PermitSamples(func(k int32, x *history.Sample, kept int64) bool {
		if k != key {
			key, next, open = k, 0, nil
		}
		for holds := c.ByKey[k]; next < len(holds) && c.Holds[holds[next]].From <= x.Sent; next++ {
			open = append(open, holds[next])
		}
		open = slices.DeleteFunc(open, func(i int32) bool { return c.Holds[i].Until < x.Time })
		sum, span := int64(0), refs.None
		for i, h := range refs.At(c.Holds, open) {
			if !h.PromisedAt(x.Sent) || !h.PromisedAt(segment.Later(x.Time, ledger.KeepError(0, c.O))) ||
				c.Touched(c.All, segment.Of(requested(c, h, x.Sent), x.Time)) {
				continue
			}
			if n := c.OutAt(i, x.Time); n > 0 {
				sum, span = sum+n, h.Span
			}
		}
		if sum <= kept {
			return true
		}
		c.Found.Add(finding.Finding{Rule: claims.FewerPermits, X: refs.None, Y: span, Start: x.Time, End: x.Time,
			Note: fmt.Sprintf("%s, but clients were promised %d", finding.KeptPermits(c.View, x, k), sum)})
		return false
	})
}

// requested is since when the promise of h that is in force at t was requested: the acquire, or a later renewal if it
// is certain which hold of its owner that was about.
func requested(c *claims.Check, h *ledger.Hold, t time.Duration) time.Duration {
	since := h.Asked
	for _, p := range c.Promises().All(h.Owner, h.Key) {
		switch {
		case p.At > t:
			return since
		case p.Kind == claims.PromiseMade && p.Span != h.Span: // another hold of the owner
			return h.Asked
		case p.Kind == claims.PromiseReplaced && (p.Span != refs.None ||
			!c.All.MayAffect(segment.Of(p.Asked, p.Asked), excuse.AnyClient, history.AffectsTraffic, history.AffectsClients)):
			since = p.Asked
		}
	}
	return since
}
