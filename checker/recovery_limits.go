package checker

import (
	"github.com/lockchaos/lockchaos/history"
)

// judgeLimits finds the holds that a lock renewed by itself after the time for which it may (Options.MaxHold): a holder
// that is alive and stuck would keep the lock for good (redis.io, Distributed Locks: extensions must be limited). When
// a renewal was sent follows from the end of the promise that it made, and from the lease, whose maximum the promise of
// the grant shows. It returns how many holds were judged: holds that their owner neither renewed by hand nor acquired
// again.
func (v *view) judgeLimits(o Options, found *findings) (judged int) {
	if o.MaxHold == 0 {
		return 0
	}
	requests := make(map[ownerKey]int)
	for _, s := range refs(v.h.Spans) {
		if s.Outcome != history.Fail && (isAcquire(s.Op) || s.Op == history.OpRenew) {
			requests[ownerKey{s.Owner, s.Key}]++
		}
	}
	for i, h := range refs(v.holds) {
		s, end := &v.h.Spans[h.span], h.lastPromise()
		if s.Lease != 0 || s.Valid == 0 || end == never || requests[ownerKey{h.owner, h.key}] != 1 {
			continue
		}
		judged++
		if renewed := end - (s.Valid - s.Call); renewed > later(h.from, o.MaxHold+o.slack()) {
			found.add(finding{rule: renewedBeyond, x: i, y: h.span, start: later(h.from, o.MaxHold), end: renewed})
		}
	}
	return judged
}
