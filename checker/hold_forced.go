package checker

import "github.com/lockchaos/lockchaos/history"

// This file is about forced releases (op force-release), which end the holds of all owners, or take some permits of
// one.

// forced ends the holds that a forced release may have ended: those that were requested before it returned. One whose
// release succeeded was still there then. That a hold was there before the forced release is certain only if it was
// granted before: that one is certainly gone afterwards. One that was granted while the forced release was in flight
// was granted after it if another hold was there until then. An owner does not rely on the permits that it has left
// when some were taken from it, and the servers keep them until it releases them, or until their lease ends.
func (b *holdFold) forced(s *history.Span) {
	before := b.heldBefore(s)
	for i := range b.holds {
		h := &b.holds[i]
		switch {
		case h.key != s.Key || h.asked >= s.Return || s.Some && h.owner != s.Owner:
			continue
		case h.from > s.Call && before != none && b.holds[before].owner != h.owner: // granted after it
			continue
		case h.from > s.Call && h.ending != endReleased: // perhaps granted before it, perhaps after it
			b.ownerOrder[h.owner], b.doubts[h.owner] = concurrent, forcedAtGrant
		}
		if s.Outcome == history.OK && h.from <= s.Call && !s.Some {
			h.freeBy = min(h.freeBy, s.Return)
		}
		at := max(s.Call, h.from)
		if h.ending == endReleased || h.until <= at {
			continue
		}
		open := h.ending == endOpen
		h.until, h.core, h.ending = at, min(h.core, at), endLost
		h.endEvent = max(s.Invoked, s.Ended, b.h.Spans[h.span].Ended)
		if open {
			b.noteLost(h)
		}
	}
}

// heldBefore is a hold that excludes all others and was certainly there until a forced release took effect, or none.
func (b *holdFold) heldBefore(s *history.Span) int32 {
	for i := range b.holds {
		h := &b.holds[i]
		if h.key == s.Key && !h.reader && h.from <= s.Call && h.until >= s.Return && s.Outcome == history.OK &&
			b.h.Limit(s.Key) == 0 && h.promisedAt(s.Call) && h.promisedAt(s.Return) {
			return int32(i)
		}
	}
	return none
}

// mayBeForced says whether a forced release of unknown outcome may have ended the hold that an acquire is within.
func (b *holdFold) mayBeForced(acquire *history.Span) bool {
	return b.hasRare(func(s *history.Span) bool {
		return s.Op == history.OpForceRelease && s.Outcome == history.Info && s.Key == acquire.Key && s.Call < acquire.Return
	})
}

// forcedUnknown applies the forced releases of unknown outcome, which may take effect at any time.
func (b *holdFold) forcedUnknown() {
	for _, i := range b.rare {
		if s := &b.h.Spans[i]; s.Op == history.OpForceRelease && s.Outcome == history.Info {
			b.forced(s)
		}
	}
}

// forced are, by key, the forced releases that succeeded.
func (v *view) forced() map[int32][]int32 {
	var all map[int32][]int32
	for _, i := range v.rare {
		s := &v.h.Spans[i]
		if s.Op != history.OpForceRelease || s.Outcome != history.OK {
			continue
		}
		if all == nil {
			all = make(map[int32][]int32)
		}
		all[s.Key] = append(all[s.Key], i)
	}
	return all
}

// forcedBetween is one of some forced releases that certainly happened after a grant and before an operation; none if
// there is none.
func (v *view) forcedBetween(all []int32, grant, s *history.Span) int32 {
	for _, i := range all {
		f := &v.h.Spans[i]
		if f.Call >= grant.Return && f.Return <= s.Call && (!f.Some || f.Owner == s.Owner) {
			return i
		}
	}
	return none
}

// force applies a forced release, s, to what one owner has.
func (l *ownerLedger) force(i int32, s *history.Span, spans []history.Span) {
	depth := int32(-1)
	if n := len(l.ops); s.Outcome == history.OK && n > 0 && l.depths[n-1] >= 0 && spans[l.ops[n-1]].Return <= s.Call {
		depth = 0
	}
	l.ops, l.depths = append(l.ops, i), append(l.depths, depth)
}
