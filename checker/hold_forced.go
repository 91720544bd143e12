package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file is about forced releases (op force-release), which end the holds of all owners, or take some permits of
// one.

// forced ends the holds that a forced release may have ended: those that were requested before it returned. A hold
// whose release succeeded still existed then. A hold that was granted before the forced release was invoked has
// certainly ended afterwards. A hold that was granted while the forced release was in flight was granted after it if
// another hold existed until then. If only some permits of an owner were released by force, the owner does not rely
// on the others, and the servers keep those until it releases them (see losePermits), or until their lease ends.
func (b *holdFold) forced(i int32, s *history.Span) {
	b.forcedBy(i, b.heldBefore(s), s.Return)
}

// forcedBy applies forced release n, which has certainly taken effect by a time; before: see [holdFold.heldBefore].
func (b *holdFold) forcedBy(n, before int32, by time.Duration) {
	s := &b.h.Spans[n]
	if before != none {
		b.effects[n] = by
	}
	for _, h := range refs(b.holds) {
		switch {
		case h.key != s.Key || h.asked >= by || s.Some && h.owner != s.Owner:
			continue
		case h.from > s.Call && before != none && b.holds[before].owner != h.owner: // granted after it
			continue
		case h.from > s.Call && h.ending != endReleased: // perhaps granted before it, perhaps after it
			b.ownerOrder[h.owner], b.unknownWhy[h.owner] = ordUnknown, forcedAtGrant
		}
		if by < never && h.from <= s.Call && !s.Some {
			h.freeBy = min(h.freeBy, by)
		}
		if s.Some && s.Outcome == history.OK {
			h.mutableExtra().partForced = true
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
	for i, h := range refs(b.holds) {
		if h.key == s.Key && !h.reader && h.from <= s.Call && h.until >= s.Return && s.Outcome == history.OK &&
			b.h.Limit(s.Key) == 0 && h.promisedAt(s.Call) && h.promisedAt(s.Return) {
			return i
		}
	}
	return none
}

// mayBeForced reports whether a forced release of unknown outcome may have ended the hold that an acquire is within.
func (b *holdFold) mayBeForced(acquire *history.Span) bool {
	return b.hasRare(func(s *history.Span) bool {
		return s.Op == history.OpForceRelease && s.Outcome == history.Info && s.Key == acquire.Key && s.Call < acquire.Return
	})
}

// forcedUnknown applies the forced releases of unknown outcome, which may take effect at any time.
func (b *holdFold) forcedUnknown() {
	for i, s := range refsAt(b.h.Spans, b.rare) {
		if s.Op == history.OpForceRelease && s.Outcome == history.Info {
			before, by := b.provenBy(i)
			b.forcedBy(i, before, by)
		}
	}
}

// provenBy finds a hold that shows that forced release i, whose outcome is unknown, has taken effect: it excluded all
// others and was promised at the call, and still was when another owner was granted the lock, which no other operation
// had freed. That grant is the time by which it had. none, never: there is no such hold. A quorum is not free as a
// whole: what is still on its way to some of its servers may take effect there.
func (b *holdFold) provenBy(i int32) (before int32, by time.Duration) {
	s := &b.h.Spans[i]
	if b.quorum || s.Some || b.h.Limit(s.Key) != 0 {
		return none, never
	}
	before, by = none, never
	for n, h := range refs(b.holds) {
		if h.key == s.Key && !h.reader && h.from <= s.Call && h.until > s.Call && h.promisedAt(s.Call) {
			before = n
		}
	}
	if before == none {
		return none, never
	}
	h := &b.holds[before]
	for _, g := range refs(b.holds) {
		if g.key == s.Key && g.owner != h.owner && g.from > s.Call {
			by = min(by, g.from)
		}
	}
	during := segment{h.asked, by}
	dis := disturbances{times: b.faultTimes()}
	if by == never || h.until < by || !h.promisedAt(by) || dis.mayAffect(during, anyClient, history.AffectsData) ||
		b.mayBeForcedBefore(i, h, by) {
		return none, never
	}
	return before, by
}

// mayBeForcedBefore reports whether another forced release than i may have ended h before a time. One that was proven
// to have ended a hold before h was granted has not.
func (b *holdFold) mayBeForcedBefore(i int32, h *hold, until time.Duration) bool {
	for n, x := range refsAt(b.h.Spans, b.rare) {
		if n == i || x.Op != history.OpForceRelease || x.Outcome == history.Fail || x.Key != h.key || x.Call >= until {
			continue
		}
		if by, is := b.effects[n]; is && by <= h.from || x.Return <= h.asked {
			continue
		}
		return true
	}
	return false
}

// forced are, by key, the forced releases that succeeded.
func (v *view) forced() map[int32][]int32 {
	all := make(map[int32][]int32)
	for i, s := range refsAt(v.h.Spans, v.rare) {
		if s.Op != history.OpForceRelease || s.Outcome != history.OK {
			continue
		}
		all[s.Key] = append(all[s.Key], i)
	}
	return all
}

// forcedBetween is one of some forced releases that certainly happened after a grant and before an operation; none if
// there is none.
func (v *view) forcedBetween(all []int32, grant, s *history.Span) int32 {
	for i, f := range refsAt(v.h.Spans, all) {
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
