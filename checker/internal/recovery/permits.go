package recovery

import (
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// permitsOfDead finds permits of a client that died, not just before the end, which no known lease returns: the client
// requested none, and no reply had a validity. Only a later grant, a sample or the count at the end shows that they are
// free again. The probe of one permit does not, while there are others. The result says whose permits may be gone for
// good; "": none. A lock that states that it has no leases ([promise.Unleased]) need not return them.
func permitsOfDead(v *bounds.View, o given.Options) string {
	if o.States(promise.Unleased) {
		return ""
	}
	e := v.FreeTimes().Extents
	for i, h := range refs.All(v.Holds) {
		limit := v.H.Limit(h.Key)
		if limit <= 1 || v.EndOf(h) != property.Crashed || e.FreeAt(i) != segment.Never ||
			v.LastActivity()-h.Until <= (given.Options{}).Slack() {
			continue
		}
		n := v.OutAt(i, h.Until)
		if n == 0 || permitsAgain(v, h, n, int64(limit)) {
			continue
		}
		why := "the lock does not state that it renews leases (watchdog)"
		if o.States(promise.Watchdog) {
			why = "no reply of the lock states a validity"
		}
		return fmt.Sprintf("client %d crashed at %s, while it held %s of %s; it requested no lease and %s, so it is not "+
			"known when they are free again, and nothing shows that they were", v.Client(h.Span), format.Instant(h.Until),
			format.Count(int(n), "permit"), finding.LockName(v.H.Keys[h.Key]), why)
	}
	return ""
}

// permitsAgain reports whether n permits of a hold that ended without a release were certainly free again: clients then
// held more than the others, a server kept fewer than the hold and the clients had, or none were taken at the end.
func permitsAgain(v *bounds.View, h *ledger.Hold, n, limit int64) (again bool) {
	holds := v.ByKey[h.Key]
	for m, i := range holds {
		if t := v.Holds[i].From; t > h.Until && v.PermitsAt(holds[max(0, m-ledger.MaxLookBack):m+1], t)+n > limit {
			return true
		}
	}
	if s := v.Samples(); s != nil {
		s.PermitSamples(func(key int32, x *history.Sample, kept int64) bool {
			again = again || key == h.Key && x.Sent > h.Until && kept < n
			return !again
		})
	}
	return again || slices.ContainsFunc(v.H.Leftovers, func(l history.Leftover) bool {
		return l.Key == h.Key && l.Permits == 0 && l.Time > h.Until
	})
}
