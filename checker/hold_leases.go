package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// LeaseStart says from when on the lease of a hold counts whose grant stated no validity.
type LeaseStart string

// The starts of a lease.
const (
	LeaseNotCounted  LeaseStart = ""                               // the grant stated a validity, or there is no lease
	LeaseFromRequest LeaseStart = "counted from the request"       // at the earliest: the servers may have begun it later
	LeaseFromServer  LeaseStart = "counted from a server's sample" // the first that shows it
	LeaseFromGrant   LeaseStart = "counted from the grant"         // counted from the request, it had ended before
)

// countLeases corrects the ends of promises that count from a request, because a lock that grants a lease after a long
// wait begins it late: the first sample of a hold shows the rest of its lease. Without such a sample a lease that had
// ended before the grant, counted from the request, counts from the grant, unless a fault may have delayed the reply: a
// lock that grants it promises it then.
func (v *view) countLeases(o Options) {
	for _, h := range refs(v.holds) {
		s := &v.h.Spans[h.span]
		if !v.excludes(h.key) || s.Valid != 0 || s.Lease == 0 || v.lapsed(h) || h.valid != promised(s) {
			continue
		}
		until, start := v.leaseShown(h, s.Lease, o), LeaseFromServer
		if until <= h.from && h.expiredOnArrival && !v.mayBeDelayed(h, o) {
			until, start = later(h.from, s.Lease), LeaseFromGrant
		}
		if later := h.extra().laterPromises; len(later) > 0 {
			until = min(until, later[0].from)
		}
		if until > max(h.valid, h.from) {
			h.valid, v.leaseStarts[h.span] = until, start
		}
	}
}

// leaseStart is the event from which the lease of a hold counts.
func (v *view) leaseStart(h *hold) LeaseStart {
	if s := &v.h.Spans[h.span]; s.Valid != 0 || s.Lease == 0 {
		return LeaseNotCounted
	}
	return cmp.Or(v.leaseStarts[h.span], LeaseFromRequest)
}

// renewed reports whether a renewal changed the first promise of a hold.
func (v *view) renewed(h *hold) bool {
	return v.leaseStarts[h.span] == LeaseNotCounted && h.valid != promised(&v.h.Spans[h.span])
}

// countedLeases names the starts of the leases of two holds, except requests.
func (v *view) countedLeases(x, y *hold) (text string) {
	for _, h := range []*hold{x, y} {
		if start := v.leaseStarts[h.span]; start != LeaseNotCounted {
			text += fmt.Sprintf("; the lease of client %d, which states no validity, is %s", v.client(h.span), start)
		}
	}
	return text
}

// mayBeDelayed reports whether faults may have delayed the reply to a grant from the end of its lease, counted from the
// request, until it came.
func (v *view) mayBeDelayed(h *hold, o Options) bool {
	delays := []string{history.AffectsClients, history.AffectsTraffic, history.AffectsDelays, history.AffectsReplies}
	return h.from < v.allDisturbances(o).heldUntil(h.valid, v.client(h.span), func(f *faultTime) bool {
		return slices.ContainsFunc(delays, f.mayAffect)
	})
}

// leaseShown is the end of the lease of a hold by the first sample that shows it; 0: none does.
func (v *view) leaseShown(h *hold, lease time.Duration, o Options) time.Duration {
	values := v.kept()
	if values == nil || v.quorum {
		return 0
	}
	for _, s := range values.Showing(h.span) {
		rest := s.First.Keys[v.h.Keys[h.key]].TTL
		if rest >= 0 && rest <= lease+keepError(lease, o) {
			return s.First.Sent + rest
		}
	}
	return 0
}
