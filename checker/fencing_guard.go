package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// judgeGuards judges what a guard that belongs to the lock did with the tokens that were presented to it, and returns
// how many it answered. It accepts a token unless a greater one was presented before: an acceptance is wrong if one
// was certainly accepted before it, and a refusal if none can have been presented. A fault may have changed what the
// guard has seen.
func (v *view) judgeGuards(o Options, found *findings) (answered int) {
	byKey := make(map[int32][]int32)
	for i := range v.h.Spans {
		if s := &v.h.Spans[i]; s.Op == history.OpGuard && s.Token != 0 {
			byKey[s.Key] = append(byKey[s.Key], int32(i))
		}
	}
	if len(byKey) == 0 {
		return 0
	}
	dis := v.disturbances(o)
	for _, presented := range byKey { // in any order: findings are sorted
		byReturn := slices.Clone(presented)
		slices.SortStableFunc(byReturn, func(i, j int32) int {
			return cmp.Compare(v.h.Spans[i].Return, v.h.Spans[j].Return)
		})
		accepted, n := none, 0 // the one with the greatest token among the first n of byReturn
		for _, i := range presented {
			s := &v.h.Spans[i]
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
				if !v.newerPresented(presented, s) {
					found.add(finding{rule: guardRefused, x: none, y: i, start: s.Return, end: s.Return})
				}
			}
		}
	}
	return answered
}

// newerPresented says whether a greater token than that of s can have been presented before s was refused.
func (v *view) newerPresented(presented []int32, s *history.Span) bool {
	return slices.ContainsFunc(presented, func(i int32) bool {
		x := &v.h.Spans[i]
		return x.Token > s.Token && x.Call <= s.Return
	})
}

// guardViolation words a finding of this file.
func (v *view) guardViolation(f finding) Violation {
	s := &v.h.Spans[f.y]
	w := v.spanViolation(f.y, "a guard accepts a token unless it has seen a greater one", "")
	what := "refused"
	if f.rule == guardAccepted {
		what = "accepted"
	}
	w.Text = fmt.Sprintf("the guard of %s %s token %d of client %d at %s", lockName(w.Key), what, s.Token, w.Clients[0],
		format.Instant(s.Return))
	if f.rule == guardRefused {
		w.Text += ", and no greater one had been presented"
		return w
	}
	x := &v.h.Spans[f.x]
	w.Events = slices.Concat([]int{int(x.Ended)}, w.Events)
	w.Text += fmt.Sprintf(", although it had accepted token %d at %s", x.Token, format.Instant(x.Return))
	return w
}
