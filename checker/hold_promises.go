package checker

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file is about the promises to holders, and their ends.

// promised is until when a grant or a renewal promised the lock. Without a validity in the reply it is the requested
// lease, counted from the invocation at the earliest; without a lease as well, the lock is promised without an end.
func promised(s *history.Span) time.Duration {
	switch {
	case s.Valid != 0:
		return s.Valid
	case s.Lease > 0 && s.Call < never-s.Lease:
		return s.Call + s.Lease
	}
	return never
}

// promise replaces the promise in force at t; after a gap it begins a new one.
func (h *hold) promise(t, valid time.Duration) {
	last := &h.valid
	if later := h.extra().laterPromises; len(later) > 0 {
		last = &later[len(later)-1].until
	}
	if t <= *last {
		if *last > valid && *last != never {
			h.mutableExtra().furthest = max(h.extra().furthest, *last)
		}
		*last = max(t, valid)
		return
	}
	if valid > t {
		more := h.mutableExtra()
		more.laterPromises = append(more.laterPromises, segment{t, valid})
	}
}

// bothPromised is the longest part of s that is certainly inside promises of both holds.
func (v *view) bothPromised(x, y *hold, s segment) segment {
	return bothPromised(x, y, s.from, max(s.from, min(s.until, v.unrenewedFrom(x), v.unrenewedFrom(y))))
}

// bothPromised is the longest part of [from, until) inside promises of both holds.
func bothPromised(x, y *hold, from, until time.Duration) segment {
	best := segment{from, from}
	i, j := x.firstAfter(from), y.firstAfter(from)
	for i < len(x.extra().laterPromises) && j < len(y.extra().laterPromises) {
		a, b := x.promises(i), y.promises(j)
		if a.from >= until || b.from >= until {
			break
		}
		s := segment{max(a.from, b.from, from), min(a.until, b.until, until)}
		if s.until-s.from > best.until-best.from {
			best = s
		}
		if a.until < b.until {
			i++
		} else {
			j++
		}
	}
	return best
}

// promises is promise i of a hold; -1 is the promise of the acquire.
func (h *hold) promises(i int) segment {
	if i < 0 {
		return segment{h.from, h.valid}
	}
	return h.extra().laterPromises[i]
}

// firstAfter is the index of the first promise that ends after t, or of the only promise; the number of
// later promises if there is none. Promises are disjoint and in the order of time.
func (h *hold) firstAfter(t time.Duration) int {
	if h.valid > t || len(h.extra().laterPromises) == 0 {
		return -1
	}
	return sort.Search(len(h.extra().laterPromises), func(i int) bool { return h.extra().laterPromises[i].until > t })
}

// promisedAt reports whether the holder could rely on the lock at t.
func (h *hold) promisedAt(t time.Duration) bool {
	i := h.firstAfter(t)
	if i >= 0 && i == len(h.extra().laterPromises) {
		return false
	}
	p := h.promises(i)
	return p.from <= t && t < p.until
}

// promised reports whether the holder could rely on the lock at any time.
func (h *hold) promised() bool { return h.valid > h.from || len(h.extra().laterPromises) > 0 }

// lapsed is when the holder's promise last ended before t; never if it did not.
func (h *hold) lapsed(t time.Duration) time.Duration {
	i := h.firstAfter(t) // all before it have ended
	switch {
	case i >= 0:
		return h.promises(i - 1).until
	case h.valid <= t:
		return h.valid
	}
	return never
}

// leaseEnd is when servers forget a hold at the latest: a promise ends before the lease that it is made of, because it
// counts from the request, and the lease from its execution, which may be as late as the reply. never: it is not known.
func (b *holdFold) leaseEnd(h *hold) time.Duration {
	s, end := &b.h.Spans[h.span], h.lastPromise()
	switch {
	case end == never || s.Valid == 0:
		return never
	case h.extra().leased > 0:
		return max(end, h.extra().leased)
	case s.Lease > 0:
		return max(end, later(h.from, s.Lease))
	}
	return later(end, (s.Valid-s.Call)/20)
}

// keptUntil is the time until which servers may keep a hold whose loss was reported. 0: unknown. A lock that renews
// reports a loss when a renewal has no reply in time, which servers may have executed. A lease is assumed to be up to a
// twentieth longer than its promise, as in [holdFold.leaseEnd].
func (b *holdFold) keptUntil(h *hold) time.Duration {
	end := b.leaseEnd(h)
	if h.ending != endLost || end == never || !b.lossReported(h) {
		return 0
	}
	if s := &b.h.Spans[h.span]; s.Lease == 0 {
		faults := disturbances{times: b.faultTimes()}
		client, lease := b.client(h.span), s.Valid-s.Call
		sent := segment{max(h.from, h.until-lease), h.until} // the renewals without a reply
		if faults.mayAffect(sent, client, history.AffectsTraffic, history.AffectsDelays, history.AffectsClients) {
			end = max(end, later(faults.deliveredBy(h.until, client), lease+lease/20))
		}
	}
	return end
}

// lease notes the lease that a reply at t confirmed. 0: the lease of the acquire.
func (b *holdFold) lease(h *hold, t, lease time.Duration) {
	if lease == 0 {
		lease = b.h.Spans[h.span].Lease
	}
	if lease > 0 {
		h.mutableExtra().leased = later(t, lease)
	}
}
