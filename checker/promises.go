package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file is about what holders were promised, and until when.

// promised is until when a grant or a renewal promised the lock. A lock that
// tells no validity has still promised what it was asked for, a lease counted
// from the invocation at the earliest; one that was asked for no lease, and
// tells no validity, has promised the lock until it says otherwise.
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
	if n := len(h.more); n > 0 {
		last = &h.more[n-1].until
	}
	if t <= *last {
		*last = max(t, valid)
		return
	}
	if valid > t {
		h.more = append(h.more, segment{t, valid})
	}
}

// both is the longest stretch of [from, until) inside both holds' promises.
func both(x, y *hold, from, until time.Duration) segment {
	best := segment{from, from}
	for i := -1; i < len(x.more); i++ {
		a := x.promises(i)
		for j := -1; j < len(y.more); j++ {
			b := y.promises(j)
			s := segment{max(a.from, b.from, from), min(a.until, b.until, until)}
			if s.until-s.from > best.until-best.from {
				best = s
			}
		}
	}
	return best
}

// promises is the promise number i of a hold, from -1 (the acquire's) on.
func (h *hold) promises(i int) segment {
	if i < 0 {
		return segment{h.from, h.valid}
	}
	return h.more[i]
}

// promisedAt says whether the holder could rely on the lock at t.
func (h *hold) promisedAt(t time.Duration) bool {
	for i := -1; i < len(h.more); i++ {
		if p := h.promises(i); p.from <= t && t < p.until {
			return true
		}
	}
	return false
}

// lapsed is when the holder's promise last ran out before t; never if it did not.
func (h *hold) lapsed(t time.Duration) time.Duration {
	for i := len(h.more) - 1; i >= -1; i-- {
		if p := h.promises(i); p.until <= t {
			return p.until
		}
	}
	return never
}
