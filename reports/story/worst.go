package story

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/reports/cause"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/overlap"
)

// explanation is a violation and its cause; zero if the run has none.
type explanation struct {
	v *checker.Violation
	p *overlap.Pair // nil: the violation is not about two holds
	c *cause.Cause
}

// maxExplained is how many violations are searched for one with a mechanism that explains it.
const maxExplained = 20

// explain chooses the violation that the page explains: the worst one that a mechanism explains by a fault, or else the
// worst that a mechanism explains, or else the worst one. Which of many violations comes first is chance.
func explain(r *evidence.Run) (best explanation) {
	top := -1
	all := mostSevere(r)
	for _, v := range all[:min(len(all), maxExplained)] {
		p := overlap.Of(r, v)
		c := cause.Find(r, v, r.PropertyOf(v), p)
		if e := c.Explains(); e > top {
			top, best = e, explanation{v, p, c}
		}
		if top == cause.ExplainsByFault {
			break
		}
	}
	return best
}

// mostSevere are the most severe of the violations that set the class of the verdict: first the ones about as long as
// the longest, in the order of time, because later ones may follow from the first; then the others from long to short.
func mostSevere(r *evidence.Run) []*checker.Violation {
	var all []*checker.Violation
	top := false
	var longest time.Duration
	for _, v := range r.Judgement.Decisive() {
		p := r.PropertyOf(v)
		if p == checker.Exercised { // it has no place in time
			continue
		}
		s := evidence.Overlaps(p) // two holders at once above their consequences
		if s && !top {
			top, all, longest = true, nil, 0
		}
		if s == top {
			all, longest = append(all, v), max(longest, r.During(v).Length())
		}
	}
	slices.SortStableFunc(all, func(a, b *checker.Violation) int {
		x, y := r.During(a).Length(), r.During(b).Length()
		if long := longest / 10 * 9; x >= long && y >= long {
			return cmp.Compare(a.Start, b.Start)
		}
		return cmp.Compare(y, x)
	})
	return all
}
