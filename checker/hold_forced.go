package checker

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

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
		b.forcible = newForcible(b.view)
	}
	f := b.forcible
	f.read()
	held := f.holds[s.Key]
	b.forcedBy(i, b.heldBefore(held, s), s.Return, held)
	f.holds[s.Key] = slices.DeleteFunc(held, func(h *hold) bool {
		return h.until < f.earliest[i] && h.freeBy <= s.Return
	})
}

// forcible are the holds that a forced release which succeeded may still change: all that have not ended before the
// next one is invoked.
type forcible struct {
	*view
	holds    [][]*hold               // by key, in the order of their grants
	seen     int                     // how many holds of the view are in these lists, or were
	earliest map[int32]time.Duration // by forced release: when the first of the following ones is invoked
}

func newForcible(v *view) *forcible {
	f := &forcible{view: v, holds: make([][]*hold, len(v.h.Keys)), earliest: make(map[int32]time.Duration)}
	all := slices.Concat(slices.Collect(maps.Values(v.forced()))...)
	slices.SortFunc(all, func(a, b int32) int { return cmp.Compare(v.h.Spans[a].Ended, v.h.Spans[b].Ended) })
	next := never
	for _, i := range slices.Backward(all) {
		f.earliest[i] = next
		next = min(next, v.h.Spans[i].Call)
	}
	return f
}

// read adds the holds that began since the last time.
func (f *forcible) read() {
	for ; f.seen < len(f.view.holds); f.seen++ {
		h := &f.view.holds[f.seen]
		f.holds[h.key] = append(f.holds[h.key], h)
	}
}

// freed notes that a release ended a hold, even if a forced release may have ended it before.
func (b *holdFold) freed(h *hold, at time.Duration) {
	h.freeBy = at
	if b.forcible != nil {
		b.forcible.holds[h.key] = append(b.forcible.holds[h.key], h)
	}
}

// forcedBy applies forced release n, which has certainly taken effect by a time, to holds of its key; before: see
// [holdFold.heldBefore].
func (b *holdFold) forcedBy(n int32, before *hold, by time.Duration, held []*hold) {
	s := &b.h.Spans[n]
	if before != nil {
		b.effects[n] = by
	}
	if s.Some && s.Outcome == history.OK {
		b.eachOf(s, func(_ int32, h *hold) bool {
			h.mutableExtra().partForced = true
			return true
		})
	}
	for _, h := range held {
		switch {
		case h.asked >= by || s.Some && h.owner != s.Owner:
			continue
		case h.from > s.Call && before != nil && before.owner != h.owner: // granted after it
			continue
		case h.from > s.Call && h.ending != endReleased: // perhaps granted before it, perhaps after it
			b.ownerOrder[h.owner], b.unknownWhy[h.owner] = ordUnknown, forcedAtGrant
		}
		if by < never && h.from <= s.Call && !s.Some {
			h.freeBy = min(h.freeBy, by)
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

// heldBefore is one of some holds that excludes all others and was certainly there until a forced release took effect;
// nil: there is none.
func (b *holdFold) heldBefore(held []*hold, s *history.Span) *hold {
	for _, h := range held {
		if !h.reader && h.from <= s.Call && h.until >= s.Return && s.Outcome == history.OK &&
			b.h.Limit(s.Key) == 0 && h.promisedAt(s.Call) && h.promisedAt(s.Return) {
			return h
		}
	}
	return nil
}

// mayBeForced reports whether a forced release of unknown outcome may have ended the hold that an acquire is within.
func (b *holdFold) mayBeForced(acquire *history.Span) bool {
	return b.hasRare(func(s *history.Span) bool {
		return s.Op == history.OpForceRelease && s.Outcome == history.Info && s.Key == acquire.Key && s.Call < acquire.Return
	})
}

// forcedUnknown applies the forced releases of unknown outcome, which may take effect at any time. One that may take
// effect at any time from its invocation on leaves nothing to later ones.
func (b *holdFold) forcedUnknown() {
	var byKey []promisedHolds
	unbounded := make(map[int32]bool) // keys
	for i, s := range refsAt(b.h.Spans, b.rare) {
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
	list   []*hold
	latest []time.Duration // the latest end of the promises up to this one, while its owner relied on it
}

func (b *holdFold) promisedByKey() []promisedHolds {
	all := make([]promisedHolds, len(b.h.Keys))
	for _, h := range refs(b.holds) {
		end := h.valid
		for _, p := range h.extra().laterPromises {
			end = max(end, p.until)
		}
		if end = min(end, h.until); len(all[h.key].list) > 0 {
			end = max(end, all[h.key].latest[len(all[h.key].latest)-1])
		}
		all[h.key].list, all[h.key].latest = append(all[h.key].list, h), append(all[h.key].latest, end)
	}
	return all
}

// provenBy finds a hold of the key that proves that forced release i, whose outcome is unknown, has taken effect: the
// hold excluded all others and was promised at the call, and still was when another owner was granted the lock, which
// no other operation had freed. That grant is the time by which it had. nil, never: there is no such hold. A quorum is
// not free as a whole: a request that is still on its way to some of its servers may take effect there.
func (b *holdFold) provenBy(i int32, held *promisedHolds) (before *hold, by time.Duration) {
	s := &b.h.Spans[i]
	if b.quorum || s.Some || b.h.Limit(s.Key) != 0 {
		return nil, never
	}
	later := sort.Search(len(held.list), func(n int) bool { return held.list[n].from > s.Call })
	for n := later - 1; n >= 0 && held.latest[n] > s.Call && before == nil; n-- {
		if h := held.list[n]; !h.reader && h.until > s.Call && h.promisedAt(s.Call) {
			before = h
		}
	}
	if before == nil {
		return nil, never
	}
	by = never
	for _, g := range held.list[later:] {
		if g.owner != before.owner {
			by = g.from
			break
		}
	}
	during := segment{before.asked, by}
	dis := disturbances{times: b.faultTimes()}
	if by == never || before.until < by || !before.promisedAt(by) ||
		dis.mayAffect(during, anyClient, history.AffectsData) || b.mayBeForcedBefore(i, before, by) {
		return nil, never
	}
	return before, by
}

// mayBeForcedBefore reports whether another forced release than i may have ended h before a time. One that was proven
// to have ended a hold before h was granted has not.
func (b *holdFold) mayBeForcedBefore(i int32, h *hold, until time.Duration) bool {
	for n, x := range refsAt(b.h.Spans, b.rare) {
		if x.Call >= until {
			break
		}
		if n == i || x.Op != history.OpForceRelease || x.Outcome == history.Fail || x.Key != h.key {
			continue
		}
		if by, is := b.effects[n]; is && by <= h.from || x.Return <= h.asked {
			continue
		}
		return true
	}
	return false
}

// findForced finds, by key, the forced releases that succeeded, in the order of their invocations.
func (v *view) findForced() map[int32][]int32 {
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
	n := sort.Search(len(all), func(n int) bool { return v.h.Spans[all[n]].Call >= grant.Return })
	for i, f := range refsAt(v.h.Spans, all[n:]) {
		if f.Call > s.Call {
			break
		}
		if f.Return <= s.Call && (!f.Some || f.Owner == s.Owner) {
			return i
		}
	}
	return none
}

// force applies forced release i to the holds of one owner.
func (l *ownerLedger) force(i int32, spans []history.Span) {
	depth, last := int32(-1), l.ops[len(l.ops)-1]
	if spans[i].Outcome == history.OK && last.depth >= 0 && spans[last.span].Return <= spans[i].Call {
		depth = 0
	}
	l.ops = append(l.ops, ledgerOp{i, depth})
}
