package checker

import (
	"cmp"
	"slices"

	"github.com/lockchaos/lockchaos/history"
)

// judgeGuards judges what a guard that belongs to the lock did with the tokens that were presented to it, and returns
// how many it answered. It accepts a token unless a greater one was presented before: an acceptance is wrong if one
// was certainly accepted before it, and a refusal if none can have been presented, or only those of readers that read
// at the same time. A fault may have changed what the guard has seen.
func (v *view) judgeGuards(o Options, found *findings) (answered int) {
	byKey := make(map[int32][]int32)
	for i, s := range refsAt(v.h.Spans, v.rare) {
		if s.Op == history.OpGuard && s.Token != 0 {
			byKey[s.Key] = append(byKey[s.Key], i)
		}
	}
	if len(byKey) == 0 {
		return 0
	}
	dis := v.allDisturbances(o)
	for _, presented := range byKey { // in any order: findings are sorted
		byReturn := slices.Clone(presented)
		slices.SortStableFunc(byReturn, func(i, j int32) int {
			return cmp.Compare(v.h.Spans[i].Return, v.h.Spans[j].Return)
		})
		accepted, n := none, 0 // the one with the greatest token among the first n of byReturn
		for i, s := range refsAt(v.h.Spans, presented) {
			for ; n < len(byReturn) && v.h.Spans[byReturn[n]].Return < s.Call; n++ {
				x := &v.h.Spans[byReturn[n]]
				if x.Outcome == history.OK && (accepted == none || x.Token > v.h.Spans[accepted].Token) {
					accepted = byReturn[n]
				}
			}
			switch {
			case s.Outcome == history.OK:
				answered++
				changed := o.applies(guardData) && dis.touch(segment{0, s.Return}, anyClient, history.AffectsData)
				if accepted != none && v.h.Spans[accepted].Token > s.Token && !changed {
					found.add(finding{rule: guardAccepted, x: accepted, y: i, start: s.Return, end: s.Return})
				}
			case s.Stale:
				answered++
				newer := v.newerPresented(presented, s)
				switch {
				case newer == none:
					found.add(finding{rule: guardRefused, x: none, y: i, start: s.Return, end: s.Return})
				case v.readsOn(s) && !o.off.has(readerRefused):
					found.add(finding{rule: readerRefused, x: newer, y: i, start: s.Return, end: s.Return})
				}
			}
		}
	}
	return answered
}

// newerPresented is a greater token than that of s which can have been presented before s was refused.
func (v *view) newerPresented(presented []int32, s *history.Span) int32 {
	n := slices.IndexFunc(presented, func(i int32) bool {
		x := &v.h.Spans[i]
		return x.Token > s.Token && x.Call <= s.Return
	})
	if n < 0 {
		return none
	}
	return presented[n]
}

// readsOn reports whether s presents the token of a reader to whom the lock was promised meanwhile, and which no writer
// can have followed: whatever was presented, its token is not old.
func (v *view) readsOn(s *history.Span) bool {
	i, held := v.lastHold(s.Owner, s.Key, s.Call)
	if !held {
		return false
	}
	h := &v.holds[i]
	if !h.reader || h.token != s.Token || h.until < s.Return || !h.promisedAt(s.Call) || !h.promisedAt(s.Return) {
		return false
	}
	return !slices.ContainsFunc(v.h.Spans, func(w history.Span) bool {
		acquires := isAcquire(w.Op)
		return acquires && w.Write && w.Key == s.Key && w.Call <= s.Return && w.Return >= h.asked &&
			(w.Outcome != history.Fail || w.Undone)
	})
}
