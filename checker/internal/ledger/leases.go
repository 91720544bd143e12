package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/kept"
)

// countLeases corrects the ends of promises that count from a request, because a lock that grants a lease after a long
// wait begins it late: the first sample of a hold shows the rest of its lease. Without such a sample a lease that had
// ended before the grant, counted from the request, counts from the grant, unless a fault may have delayed the reply: a
// lock that grants it promises it then.
func (v *View) countLeases(o given.Options) {
	for _, h := range refs.All(v.Holds) {
		s := &v.H.Spans[h.Span]
		if !v.Excludes(h.Key) || s.Valid != 0 || s.Lease == 0 || v.Lapsed(h) || h.Valid != Promised(s) {
			continue
		}
		until, start := v.leaseShown(h, s.Lease, o), property.LeaseFromServer
		if until <= h.From && h.ExpiredOnArrival && !v.mayBeDelayed(h, o) {
			until, start = segment.Later(h.From, s.Lease), property.LeaseFromGrant
		}
		if later := h.Extra().LaterPromises; len(later) > 0 {
			until = min(until, later[0].From)
		}
		if until > max(h.Valid, h.From) {
			h.Valid, v.leaseStarts[h.Span] = until, start
		}
	}
}

// LeaseStart is the event from which the lease of a hold counts.
func (v *View) LeaseStart(h *Hold) property.LeaseStart {
	if s := &v.H.Spans[h.Span]; s.Valid != 0 || s.Lease == 0 {
		return property.LeaseNotCounted
	}
	return cmp.Or(v.leaseStarts[h.Span], property.LeaseFromRequest)
}

// Renewed reports whether a renewal changed the first promise of a hold.
func (v *View) Renewed(h *Hold) bool {
	return v.leaseStarts[h.Span] == property.LeaseNotCounted && h.Valid != Promised(&v.H.Spans[h.Span])
}

// CountedLeases names the starts of the leases of two holds, except requests.
func (v *View) CountedLeases(x, y *Hold) (text string) {
	for _, h := range []*Hold{x, y} {
		if start := v.leaseStarts[h.Span]; start != property.LeaseNotCounted {
			text += fmt.Sprintf("; the lease of client %d, which states no validity, is %s", v.Client(h.Span), start)
		}
	}
	return text
}

// mayBeDelayed reports whether faults may have delayed the reply to a grant from the end of its lease, counted from the
// request, until it came.
func (v *View) mayBeDelayed(h *Hold, o given.Options) bool {
	delays := []string{history.AffectsClients, history.AffectsTraffic, history.AffectsDelays, history.AffectsReplies}
	return h.From < v.AllDisturbances(o).HeldUntil(h.Valid, v.Client(h.Span), func(f *excuse.FaultTime) bool {
		return slices.ContainsFunc(delays, f.MayAffect)
	})
}

// leaseShown is the end of the lease of a hold by the first sample that shows it; 0: none does.
func (v *View) leaseShown(h *Hold, lease time.Duration, o given.Options) time.Duration {
	values := v.Kept()
	if values == nil || v.Quorum {
		return 0
	}
	for _, s := range values.Showing(h.Span) {
		rest := s.First.Keys[v.H.Keys[h.Key]].TTL
		if rest >= 0 && rest <= lease+KeepError(lease, o) {
			return s.First.Sent + rest
		}
	}
	return 0
}

// maxWitnessed is up to how many keys a history may have for samples to be read. With more, a sample leaves out keys
// that clients have not used lately, so that a key that is absent need not be free.
const maxWitnessed = 64

// KeepError is by how much the rest of a lease at a server may differ from the true one: replies are in milliseconds,
// and its clock may run slower than the harness's by 1/1000 (twice the 500 ppm by which NTP may slow a clock).
func KeepError(rest time.Duration, o given.Options) time.Duration {
	return 5*time.Millisecond + rest/1000 + o.ClockError
}

// readKept reads samples, also of a foreign lock, as values that come and go.
func (v *View) readKept(samples []history.Sample) *kept.Values {
	if len(samples) == 0 || len(v.H.Keys) > maxWitnessed {
		return nil
	}
	return kept.Find(v.H, samples)
}
