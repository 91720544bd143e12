package fencing

import (
	"cmp"
	"slices"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// judgeGuards judges the replies of guards and returns their number. A guard is a check of fencing tokens that belongs
// to the lock: clients present their tokens to it (history.OpGuard), and it has to refuse a token once it has seen a
// greater one. To accept a token is wrong if a greater one was certainly accepted before (guardAccepted). To refuse it
// is wrong if no greater one can have been presented (guardRefused), or if the token belongs to a reader that still
// holds the lock, with whom no writer can share it (readerRefused). A fault that may have changed the data of the guard
// is an excuse for an acceptance.
func judgeGuards(v *bounds.View, o given.Options, found *finding.Findings) (answered int) {
	byKey := make(map[int32][]int32)
	for i, s := range refs.At(v.H.Spans, v.Rare) {
		if s.Op == history.OpGuard && s.Token != 0 {
			byKey[s.Key] = append(byKey[s.Key], i)
		}
	}
	if len(byKey) == 0 {
		return 0
	}
	dis := v.AllDisturbances(o)
	for _, presented := range byKey { // in any order: findings are sorted
		byReturn := slices.Clone(presented)
		slices.SortStableFunc(byReturn, func(i, j int32) int {
			return cmp.Compare(v.H.Spans[i].Return, v.H.Spans[j].Return)
		})
		accepted, n := refs.None, 0 // the accepted operation with the greatest token, of the first n of byReturn
		for i, s := range refs.At(v.H.Spans, presented) {
			for ; n < len(byReturn) && v.H.Spans[byReturn[n]].Return < s.Call; n++ {
				x := &v.H.Spans[byReturn[n]]
				if x.Outcome == history.OK && (accepted == refs.None || x.Token > v.H.Spans[accepted].Token) {
					accepted = byReturn[n]
				}
			}
			switch {
			case s.Outcome == history.OK:
				answered++
				changed := o.Applies(guardData) && dis.MayAffect(segment.Of(0, s.Return), excuse.AnyClient, history.AffectsData)
				if accepted != refs.None && v.H.Spans[accepted].Token > s.Token && !changed {
					found.Add(finding.Finding{Rule: guardAccepted, X: accepted, Y: i, Start: s.Return, End: s.Return})
				}
			case s.Stale:
				answered++
				newer := newerPresented(v, presented, s)
				switch {
				case newer == refs.None:
					found.Add(finding.Finding{Rule: guardRefused, X: refs.None, Y: i, Start: s.Return, End: s.Return})
				case stillReads(v, s) && !o.Off.Has(readerRefused):
					found.Add(finding.Finding{Rule: readerRefused, X: newer, Y: i, Start: s.Return, End: s.Return})
				}
			}
		}
	}
	return answered
}

// newerPresented is an operation that can have presented a greater token than s before s was refused; none: there is
// none.
func newerPresented(v *bounds.View, presented []int32, s *history.Span) int32 {
	n := slices.IndexFunc(presented, func(i int32) bool {
		x := &v.H.Spans[i]
		return x.Token > s.Token && x.Call <= s.Return
	})
	if n < 0 {
		return refs.None
	}
	return presented[n]
}

// stillReads reports whether s presents the token of a reader that held the lock, with a valid promise, during all of
// s, while no writer can have been granted the lock. Then the token is current, whatever other tokens were presented.
func stillReads(v *bounds.View, s *history.Span) bool {
	i, held := v.LastHold(s.Owner, s.Key, s.Call)
	if !held {
		return false
	}
	h := &v.Holds[i]
	if !h.Reader || h.Token != s.Token || h.Until < s.Return || !h.PromisedAt(s.Call) || !h.PromisedAt(s.Return) {
		return false
	}
	return !slices.ContainsFunc(v.H.Spans, func(w history.Span) bool {
		acquires := excuse.IsAcquire(w.Op)
		return acquires && w.Write && w.Key == s.Key && w.Call <= s.Return && w.Return >= h.Asked &&
			(w.Outcome != history.Fail || w.Undone)
	})
}
