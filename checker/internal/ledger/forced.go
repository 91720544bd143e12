package ledger

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// This file is about forced releases (op force-release), which end the holds of all owners, or take some permits of
// one.

// forced ends the holds that a forced release may have ended: all that were requested before it returned. A hold whose
// release succeeded still existed then. A hold that was granted before the forced release was invoked has certainly
// ended afterwards. A hold that was granted while the forced release was in flight was granted after it if another hold
// existed until then. If only some permits of an owner were released by force, the owner does not rely on the others,
// and the servers keep these until it releases them (see losePermits), or until their lease ends.
func (b *holdFold) forced(i int32, s *history.Span) {
	if b.forcible == nil {
		b.forcible = newForcible(b.View)
	}
	f := b.forcible
	f.read()
	held := f.holds[s.Key]
	b.forcedBy(i, b.heldBefore(held, s), s.Return, held)
	f.holds[s.Key] = slices.DeleteFunc(held, func(h *Hold) bool {
		return h.Until < f.earliest[i] && h.FreeBy <= s.Return
	})
}

// forcible are the holds that a forced release which succeeded may still change: all that have not ended before the
// next one is invoked.
type forcible struct {
	*View
	holds    [][]*Hold               // by key, in the order of their grants
	seen     int                     // how many holds of the view are in these lists, or were
	earliest map[int32]time.Duration // by forced release: when the first of the following ones is invoked
}

func newForcible(v *View) *forcible {
	f := &forcible{View: v, holds: make([][]*Hold, len(v.H.Keys)), earliest: make(map[int32]time.Duration)}
	all := slices.Concat(slices.Collect(maps.Values(v.Forced()))...)
	slices.SortFunc(all, func(a, b int32) int { return cmp.Compare(v.H.Spans[a].Ended, v.H.Spans[b].Ended) })
	next := segment.Never
	for _, i := range slices.Backward(all) {
		f.earliest[i] = next
		next = min(next, v.H.Spans[i].Call)
	}
	return f
}

// read adds the holds that began since the last time.
func (f *forcible) read() {
	for ; f.seen < len(f.View.Holds); f.seen++ {
		h := &f.View.Holds[f.seen]
		f.holds[h.Key] = append(f.holds[h.Key], h)
	}
}

// freed notes that a release ended a hold, even if a forced release may have ended it before.
func (b *holdFold) freed(h *Hold, at time.Duration) {
	h.FreeBy = at
	if b.forcible != nil {
		b.forcible.holds[h.Key] = append(b.forcible.holds[h.Key], h)
	}
}

// forcedBy applies forced release n, which has certainly taken effect by a time, to holds of its key; before: see
// [holdFold.heldBefore].
func (b *holdFold) forcedBy(n int32, before *Hold, by time.Duration, held []*Hold) {
	s := &b.H.Spans[n]
	if before != nil {
		b.effects[n] = by
	}
	if s.Some && s.Outcome == history.OK {
		b.eachOf(s, func(_ int32, h *Hold) bool {
			h.mutableExtra().partForced = true
			return true
		})
	}
	for _, h := range held {
		switch {
		case h.Asked >= by || s.Some && h.Owner != s.Owner:
			continue
		case h.From > s.Call && before != nil && before.Owner != h.Owner: // granted after it
			continue
		case h.From > s.Call && h.Ending != EndReleased: // perhaps granted before it, perhaps after it
			b.OwnerOrder[h.Owner], b.UnknownWhy[h.Owner] = OrdUnknown, forcedAtGrant
		}
		if by < segment.Never && h.From <= s.Call && !s.Some {
			h.FreeBy = min(h.FreeBy, by)
		}
		at := max(s.Call, h.From)
		if h.Ending == EndReleased || h.Until <= at {
			continue
		}
		open := h.Ending == endOpen
		h.Until, h.Core, h.Ending = at, min(h.Core, at), EndLost
		h.EndEvent = max(s.Invoked, s.Ended, b.H.Spans[h.Span].Ended)
		if open {
			b.noteLost(h)
		}
	}
}

// heldBefore is one of some holds that excludes all others and was certainly there until a forced release took effect;
// nil: there is none.
func (b *holdFold) heldBefore(held []*Hold, s *history.Span) *Hold {
	for _, h := range held {
		if !h.Reader && h.From <= s.Call && h.Until >= s.Return && s.Outcome == history.OK &&
			b.H.Limit(s.Key) == 0 && h.PromisedAt(s.Call) && h.PromisedAt(s.Return) {
			return h
		}
	}
	return nil
}

// mayBeForced reports whether a forced release of unknown outcome may have ended the hold that an acquire is within.
func (b *holdFold) mayBeForced(acquire *history.Span) bool {
	return b.HasRare(func(s *history.Span) bool {
		return s.Op == history.OpForceRelease && s.Outcome == history.Info && s.Key == acquire.Key && s.Call < acquire.Return
	})
}

// forcedUnknown applies the forced releases of unknown outcome, which may take effect at any time. One that may take
// effect at any time from its invocation on leaves nothing to later ones.
func (b *holdFold) forcedUnknown() {
	var byKey []promisedHolds
	unbounded := make(map[int32]bool) // keys
	for i, s := range refs.At(b.H.Spans, b.Rare) {
		if s.Op != history.OpForceRelease || s.Outcome != history.Info {
			continue
		}
		if byKey == nil {
			byKey = b.promisedByKey()
		}
		held := &byKey[s.Key]
		before, by := b.provenBy(i, held)
		if before == nil && unbounded[s.Key] {
			continue
		}
		b.forcedBy(i, before, by, held.list)
		unbounded[s.Key] = unbounded[s.Key] || before == nil && !s.Some
	}
}

// promisedHolds are the holds of a key in the order of their grants.
type promisedHolds struct {
	list   []*Hold
	latest []time.Duration // the latest end of the promises up to this one, while its owner relied on it
}

func (b *holdFold) promisedByKey() []promisedHolds {
	all := make([]promisedHolds, len(b.H.Keys))
	for _, h := range refs.All(b.Holds) {
		end := h.Valid
		for _, p := range h.Extra().LaterPromises {
			end = max(end, p.Until)
		}
		if end = min(end, h.Until); len(all[h.Key].list) > 0 {
			end = max(end, all[h.Key].latest[len(all[h.Key].latest)-1])
		}
		all[h.Key].list, all[h.Key].latest = append(all[h.Key].list, h), append(all[h.Key].latest, end)
	}
	return all
}

// provenBy finds a hold of the key that proves that forced release i, whose outcome is unknown, has taken effect: the
// hold excluded all others and was promised at the call, and still was when another owner was granted the lock, which
// no other operation had freed. That grant is the time by which it had. nil, never: there is no such hold. A quorum is
// not free as a whole: a request that is still on its way to some of its servers may take effect there.
func (b *holdFold) provenBy(i int32, held *promisedHolds) (before *Hold, by time.Duration) {
	s := &b.H.Spans[i]
	if b.Quorum || s.Some || b.H.Limit(s.Key) != 0 {
		return nil, segment.Never
	}
	later := sort.Search(len(held.list), func(n int) bool { return held.list[n].From > s.Call })
	for n := later - 1; n >= 0 && held.latest[n] > s.Call && before == nil; n-- {
		if h := held.list[n]; !h.Reader && h.Until > s.Call && h.PromisedAt(s.Call) {
			before = h
		}
	}
	if before == nil {
		return nil, segment.Never
	}
	by = segment.Never
	for _, g := range held.list[later:] {
		if g.Owner != before.Owner {
			by = g.From
			break
		}
	}
	during := segment.Of(before.Asked, by)
	dis := excuse.Disturbances{Times: b.FaultTimes()}
	if by == segment.Never || before.Until < by || !before.PromisedAt(by) ||
		dis.MayAffect(during, excuse.AnyClient, history.AffectsData) || b.mayBeForcedBefore(i, before, by) {
		return nil, segment.Never
	}
	return before, by
}

// mayBeForcedBefore reports whether another forced release than i may have ended h before a time. One that was proven
// to have ended a hold before h was granted has not.
func (b *holdFold) mayBeForcedBefore(i int32, h *Hold, until time.Duration) bool {
	for n, x := range refs.At(b.H.Spans, b.Rare) {
		if x.Call >= until {
			break
		}
		if n == i || x.Op != history.OpForceRelease || x.Outcome == history.Fail || x.Key != h.Key {
			continue
		}
		if by, is := b.effects[n]; is && by <= h.From || x.Return <= h.Asked {
			continue
		}
		return true
	}
	return false
}

// findForced finds, by key, the forced releases that succeeded, in the order of their invocations.
func (v *View) findForced() map[int32][]int32 {
	all := make(map[int32][]int32)
	for i, s := range refs.At(v.H.Spans, v.Rare) {
		if s.Op != history.OpForceRelease || s.Outcome != history.OK {
			continue
		}
		all[s.Key] = append(all[s.Key], i)
	}
	return all
}

// ForcedBetween is one of some forced releases that certainly happened after a grant and before an operation; none if
// there is none.
func (v *View) ForcedBetween(all []int32, grant, s *history.Span) int32 {
	n := sort.Search(len(all), func(n int) bool { return v.H.Spans[all[n]].Call >= grant.Return })
	for i, f := range refs.At(v.H.Spans, all[n:]) {
		if f.Call > s.Call {
			break
		}
		if f.Return <= s.Call && (!f.Some || f.Owner == s.Owner) {
			return i
		}
	}
	return refs.None
}
