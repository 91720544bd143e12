package ledger

import (
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// PromisedUntil returns the end of the promise that was in force at t, or of the last one before t.
func (h *Hold) PromisedUntil(t time.Duration) time.Duration {
	for _, p := range slices.Backward(h.Extra().LaterPromises) {
		if p.From <= t {
			return p.Until
		}
	}
	return h.Valid
}

// This file is about the promises to holders, and their ends.

// Promised is until when a grant or a renewal promised the lock. Without a validity in the reply it is the requested
// lease, counted from the invocation at the earliest; without a lease as well, the lock is promised without an end.
func Promised(s *history.Span) time.Duration {
	switch {
	case s.Valid != 0:
		return s.Valid
	case s.Lease > 0 && s.Call < segment.Never-s.Lease:
		return s.Call + s.Lease
	}
	return segment.Never
}

// promise replaces the promise in force at t; after a gap it begins a new one.
func (h *Hold) promise(t, valid time.Duration) {
	last := &h.Valid
	if later := h.Extra().LaterPromises; len(later) > 0 {
		last = &later[len(later)-1].Until
	}
	if t <= *last {
		if *last > valid && *last != segment.Never {
			h.mutableExtra().furthest = max(h.Extra().furthest, *last)
		}
		*last = max(t, valid)
		return
	}
	if valid > t {
		more := h.mutableExtra()
		more.LaterPromises = append(more.LaterPromises, segment.Of(t, valid))
	}
}

// BothPromised is the longest part of s that is certainly inside promises of both holds.
func (v *View) BothPromised(x, y *Hold, s segment.Segment) segment.Segment {
	return bothPromised(x, y, s.From, max(s.From, min(s.Until, v.UnrenewedFrom(x), v.UnrenewedFrom(y))))
}

// bothPromised is the longest part of [From, until) inside promises of both holds.
func bothPromised(x, y *Hold, from, until time.Duration) segment.Segment {
	best := segment.Of(from, from)
	i, j := x.firstAfter(from), y.firstAfter(from)
	for i < len(x.Extra().LaterPromises) && j < len(y.Extra().LaterPromises) {
		a, b := x.Promises(i), y.Promises(j)
		if a.From >= until || b.From >= until {
			break
		}
		s := segment.Of(max(a.From, b.From, from), min(a.Until, b.Until, until))
		if s.Until-s.From > best.Until-best.From {
			best = s
		}
		if a.Until < b.Until {
			i++
		} else {
			j++
		}
	}
	return best
}

// Promises is promise i of a hold; -1 is the promise of the acquire.
func (h *Hold) Promises(i int) segment.Segment {
	if i < 0 {
		return segment.Of(h.From, h.Valid)
	}
	return h.Extra().LaterPromises[i]
}

// firstAfter is the index of the first promise that ends after t, or of the only promise; the number of
// later promises if there is none. Promises are disjoint and in the order of time.
func (h *Hold) firstAfter(t time.Duration) int {
	if h.Valid > t || len(h.Extra().LaterPromises) == 0 {
		return -1
	}
	return sort.Search(len(h.Extra().LaterPromises), func(i int) bool { return h.Extra().LaterPromises[i].Until > t })
}

// PromisedAt reports whether the holder could rely on the lock at t.
func (h *Hold) PromisedAt(t time.Duration) bool {
	i := h.firstAfter(t)
	if i >= 0 && i == len(h.Extra().LaterPromises) {
		return false
	}
	p := h.Promises(i)
	return p.From <= t && t < p.Until
}

// Promised reports whether the holder could rely on the lock at any time.
func (h *Hold) Promised() bool { return h.Valid > h.From || len(h.Extra().LaterPromises) > 0 }

// Lapsed is when the holder's promise last ended before t; never if it did not.
func (h *Hold) Lapsed(t time.Duration) time.Duration {
	i := h.firstAfter(t) // all before it have ended
	switch {
	case i >= 0:
		return h.Promises(i - 1).Until
	case h.Valid <= t:
		return h.Valid
	}
	return segment.Never
}

// leaseEnd is when servers forget a hold at the latest: a promise ends before the lease that it is made of, because it
// counts from the request, and the lease from its execution, which may be as late as the reply. never: it is not known.
func (b *holdFold) leaseEnd(h *Hold) time.Duration {
	s, end := &b.H.Spans[h.Span], h.LastPromise()
	switch {
	case end == segment.Never || s.Valid == 0:
		return segment.Never
	case h.Extra().leased > 0:
		return max(end, h.Extra().leased)
	case s.Lease > 0:
		return max(end, segment.Later(h.From, s.Lease))
	}
	return segment.Later(end, (s.Valid-s.Call)/20)
}

// keptUntil is the time until which servers may keep a hold whose loss was reported. 0: unknown. A lock that renews
// reports a loss when a renewal has no reply in time, which servers may have executed. A lease is assumed to be up to a
// twentieth longer than its promise, as in [holdFold.LeaseEnd].
func (b *holdFold) keptUntil(h *Hold) time.Duration {
	end := b.leaseEnd(h)
	if h.Ending != EndLost || end == segment.Never || !b.LossReported(h) {
		return 0
	}
	if s := &b.H.Spans[h.Span]; s.Lease == 0 {
		faults := excuse.Disturbances{Times: b.FaultTimes()}
		client, lease := b.Client(h.Span), s.Valid-s.Call
		sent := segment.Of(max(h.From, h.Until-lease), h.Until) // the renewals without a reply
		if faults.MayAffect(sent, client, history.AffectsTraffic, history.AffectsDelays, history.AffectsClients) {
			end = max(end, segment.Later(faults.DeliveredBy(h.Until, client), lease+lease/20))
		}
	}
	return end
}

// lease notes the lease that a reply at t confirmed. 0: the lease of the acquire.
func (b *holdFold) lease(h *Hold, t, lease time.Duration) {
	if lease == 0 {
		lease = b.H.Spans[h.Span].Lease
	}
	if lease > 0 {
		h.mutableExtra().leased = segment.Later(t, lease)
	}
}

// LastPromise is the end of the last promise made for the hold.
func (h *Hold) LastPromise() time.Duration {
	if n := len(h.Extra().LaterPromises); n > 0 {
		return h.Extra().LaterPromises[n-1].Until
	}
	return h.Valid
}

// LongestPromise is the end of the promise for the hold that lasts longest: an inner level with a shorter lease does
// not shorten the lease of the outer one.
func (h *Hold) LongestPromise() time.Duration { return max(h.LastPromise(), h.Extra().furthest) }
