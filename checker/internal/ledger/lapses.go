package ledger

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// This file is about refusals that prove that a lease had ended before (history.Value.Lapsed). The time of its end is
// not known: the hold and its promise are certain only until the last reply that confirmed them. Holds and promises
// are derived from operations through View.PromisedBy, so that no rule has to know of such refusals.

// lapses are the conclusions from such refusals about the holds before them.
type lapses struct {
	until map[int32]time.Duration // by span of a grant or renewal: how long its promise is certain
	first map[int32]bool          // by span of a grant inside a hold: it may have been the first after the lease
	again map[OwnerKey]bool       // owners with such a grant
	After [][]segment.Segment     // by key: the times in which such a hold may have lasted, or have been granted once more
}

// confirmedLease has the known holds of an owner at a key.
type confirmedLease struct {
	grants []confirmedGrant
	depth  int32 // levels, or permits
}

// confirmedGrant is a grant and its confirmations.
type confirmedGrant struct {
	spans []int32       // the grant and its renewals
	until time.Duration // when the last request was sent whose reply shows that the servers knew the hold
}

// findLapses reads the operations of the owners that were refused so. It returns nil if none was.
func (v *View) findLapses() *lapses {
	leases := make(map[OwnerKey]*confirmedLease)
	for _, s := range refs.At(v.H.Spans, v.Rare) {
		if s.Lapsed {
			leases[Of(s)] = new(confirmedLease)
		}
	}
	if len(leases) == 0 {
		return nil
	}
	l := &lapses{until: make(map[int32]time.Duration), first: make(map[int32]bool),
		again: make(map[OwnerKey]bool), After: make([][]segment.Segment, len(v.H.Keys))}
	for i, s := range refs.All(v.H.Spans) {
		switch c := leases[Of(s)]; {
		case c == nil:
		case s.Lapsed:
			v.lapse(l, c)
			l.again[Of(s)] = l.again[Of(s)] || len(c.grants) > 1
			*c = confirmedLease{}
		case excuse.IsAcquire(s.Op) && s.Outcome == history.OK:
			c.grants, c.depth = append(c.grants, confirmedGrant{spans: []int32{i}}), c.depth+s.Permits
		case s.Op == history.OpRenew && s.Outcome == history.OK:
			c.confirm(s)
			if n := len(c.grants); n > 0 {
				c.grants[n-1].spans = append(c.grants[n-1].spans, i)
			}
		case s.Op == history.OpRelease && s.Outcome != history.Fail:
			if c.confirm(s); c.depth <= s.Permits {
				*c = confirmedLease{}
			} else {
				c.depth -= s.Permits
			}
		}
	}
	return l
}

// confirm notes that the servers knew the last grant when they received s. Whether they knew the grants before it is
// not known: their lease may have ended before the last one.
func (c *confirmedLease) confirm(s *history.Span) {
	if n := len(c.grants); n > 0 && s.Outcome == history.OK {
		c.grants[n-1].until = s.Call
	}
}

// lapse notes how long the grants of an owner are certain.
func (v *View) lapse(l *lapses, c *confirmedLease) {
	for n, g := range c.grants {
		for _, i := range g.spans {
			l.until[i] = max(v.H.Spans[i].Return, g.until)
		}
		if n > 0 {
			l.first[g.spans[0]] = true
		}
	}
}

// PromisedBy is until when grant or renewal i promised the lock, as far as that is certain.
func (v *View) PromisedBy(i int32) time.Duration {
	end := Promised(&v.H.Spans[i])
	if v.Lapses != nil {
		if until, is := v.Lapses.until[i]; is {
			return min(end, until)
		}
	}
	return end
}

// Lapsed reports whether a refusal shows that the lease of a hold had ended at an unknown time.
func (v *View) Lapsed(h *Hold) bool {
	if v.Lapses == nil {
		return false
	}
	_, is := v.Lapses.until[h.Span]
	return is
}

// mayBeFirst reports whether grant i inside a hold may have been the first after the end of its lease.
func (v *View) mayBeFirst(i int32) bool { return v.Lapses != nil && v.Lapses.first[i] }

// MayBeOfNothing reports whether a release or renewal may have been of a level that the end of its lease had ended.
func (v *View) MayBeOfNothing(s *history.Span) bool {
	return v.Lapses != nil && v.Lapses.again[Of(s)]
}

// endLapsed ends the certain part of a hold that a refusal, or a grant until s returned, ended.
func (v *View) endLapsed(h *Hold, s *history.Span) {
	if v.Lapsed(h) {
		h.Core = min(h.Core, max(h.From, v.Lapses.until[h.Span]))
		v.Promised[h.Span] = h.Core
		v.Lapses.After[h.Key] = append(v.Lapses.After[h.Key], segment.Of(h.Core, s.Return))
	}
}
