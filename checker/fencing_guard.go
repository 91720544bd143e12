package checker

import (
	"cmp"
	"slices"

	"github.com/lockchaos/lockchaos/history"
)

// judgeGuards judges the replies of guards and returns their number. A guard is a check of fencing tokens that belongs
// to the lock: clients present their tokens to it (history.OpGuard), and it has to refuse a token once it has seen a
// greater one. To accept a token is wrong if a greater one was certainly accepted before (guardAccepted). To refuse it
// is wrong if no greater one can have been presented (guardRefused), or if the token belongs to a reader that still
// holds the lock, with whom no writer can share it (readerRefused). A fault that may have changed the data of the guard
// is an excuse for an acceptance.
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
		accepted, n := none, 0 // the accepted operation with the greatest token, of the first n of byReturn
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
				changed := o.applies(guardData) && dis.mayAffect(segment{0, s.Return}, anyClient, history.AffectsData)
				if accepted != none && v.h.Spans[accepted].Token > s.Token && !changed {
					found.add(finding{rule: guardAccepted, x: accepted, y: i, start: s.Return, end: s.Return})
				}
			case s.Stale:
				answered++
				newer := v.newerPresented(presented, s)
				switch {
				case newer == none:
					found.add(finding{rule: guardRefused, x: none, y: i, start: s.Return, end: s.Return})
				case v.stillReads(s) && !o.off.has(readerRefused):
					found.add(finding{rule: readerRefused, x: newer, y: i, start: s.Return, end: s.Return})
				}
			}
		}
	}
	return answered
}

// newerPresented is an operation that can have presented a greater token than s before s was refused; none: there is
// none.
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

// stillReads reports whether s presents the token of a reader that held the lock, with a valid promise, during all of
// s, while no writer can have been granted the lock. Then the token is current, whatever other tokens were presented.
func (v *view) stillReads(s *history.Span) bool {
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
