package checker

import (
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// permitsOfDead finds permits of a client that died, not just before the end, which no known lease returns: the client
// requested none, and no reply had a validity. Only a later grant, a sample or the count at the end shows that they are
// free again. The probe of one permit does not, while there are others. The result says whose permits may be gone for
// good; "": none. A lock that states that it has no leases ([promise.Unleased]) need not return them.
func (v *view) permitsOfDead(o Options) string {
	if o.states(promise.Unleased) {
		return ""
	}
	e := v.freeTimes().extents
	for i, h := range refs(v.holds) {
		limit := v.h.Limit(h.key)
		if limit <= 1 || v.endOf(h) != Crashed || e.freeAt(i) != never || v.lastActivity()-h.until <= (Options{}).slack() {
			continue
		}
		n := v.outAt(i, h.until)
		if n == 0 || v.permitsAgain(h, n, int64(limit)) {
			continue
		}
		why := "the lock does not state that it renews leases (watchdog)"
		if o.states(promise.Watchdog) {
			why = "no reply of the lock states a validity"
		}
		return fmt.Sprintf("client %d crashed at %s, while it held %s of %s; it requested no lease and %s, so it is not "+
			"known when they are free again, and nothing shows that they were", v.client(h.span), format.Instant(h.until),
			format.Count(int(n), "permit"), lockName(v.h.Keys[h.key]), why)
	}
	return ""
}

// permitsAgain reports whether n permits of a hold that ended without a release were certainly free again: clients then
// held more than the others, a server kept fewer than the hold and the clients had, or none were taken at the end.
func (v *view) permitsAgain(h *hold, n, limit int64) (again bool) {
	holds := v.byKey[h.key]
	for m, i := range holds {
		if t := v.holds[i].from; t > h.until && v.permitsAt(holds[max(0, m-maxLookBack):m+1], t)+n > limit {
			return true
		}
	}
	if s := v.samples(); s != nil {
		s.permitSamples(func(key int32, x *history.Sample, kept int64) bool {
			again = again || key == h.key && x.Sent > h.until && kept < n
			return !again
		})
	}
	return again || slices.ContainsFunc(v.h.Leftovers, func(l history.Leftover) bool {
		return l.Key == h.key && l.Permits == 0 && l.Time > h.until
	})
}
