package recovery

import (
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// judgeLimits finds the holds that a lock renewed by itself after the time for which it may (Options.MaxHold): a holder
// that is alive and stuck would keep the lock for good (redis.io, Distributed Locks: extensions must be limited). When
// a renewal was sent follows from the end of the promise that it made, and from the lease, whose maximum the promise of
// the grant shows. It returns how many holds were judged: holds that their owner neither renewed by hand nor acquired
// again.
func judgeLimits(v *bounds.View, o given.Options, found *finding.Findings) (judged int) {
	if o.MaxHold == 0 {
		return 0
	}
	requests := make(map[ledger.OwnerKey]int)
	for _, s := range refs.All(v.H.Spans) {
		if s.Outcome != history.Fail && (excuse.IsAcquire(s.Op) || s.Op == history.OpRenew) {
			requests[ledger.Of(s)]++
		}
	}
	for i, h := range refs.All(v.Holds) {
		s, end := &v.H.Spans[h.Span], h.LastPromise()
		if s.Lease != 0 || s.Valid == 0 || end == segment.Never ||
			requests[h.At()] != 1 {
			continue
		}
		judged++
		if renewed := end - (s.Valid - s.Call); renewed > segment.Later(h.From, o.MaxHold+o.Slack()) {
			found.Add(finding.Finding{Rule: renewedBeyond, X: i, Y: h.Span, Start: segment.Later(h.From, o.MaxHold),
				End: renewed})
		}
	}
	return judged
}
