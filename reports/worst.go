package reports

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
)

// explanation is a violation and its cause; zero if the run has none.
type explanation struct {
	v *checker.Violation
	p *pair // nil: the violation is not about two holds
	c *cause
}

// maxExplained is how many violations are searched for one that a mechanism explains.
const maxExplained = 20

// explain chooses the violation that the page explains: the worst one of which a
// mechanism names a fault as the cause, or else one that a mechanism explains, or
// else the worst one. Which of many violations comes first is chance.
func (r *Run) explain() (best explanation) {
	top := -1
	all := r.mostSevere()
	for _, v := range all[:min(len(all), maxExplained)] {
		p := pairOf(r, v)
		c := findCause(r, v, r.propertyOf(v), p)
		if e := c.explains(); e > top {
			top, best = e, explanation{v, p, c}
		}
		if top == explainsByFault {
			break
		}
	}
	return best
}

// mostSevere are the most severe violations: those that are about as long as the
// longest in the order of time, because later ones may follow from the first; then
// the others from long to short.
func (r *Run) mostSevere() []*checker.Violation {
	var all []*checker.Violation
	top := 0
	var longest time.Duration
	for res, v := range r.violations() {
		if !isDrawn(res) {
			continue
		}
		s := severity(res.Property, v)
		if s > top {
			top, all, longest = s, nil, 0
		}
		if s == top {
			all, longest = append(all, v), max(longest, r.during(v).length())
		}
	}
	slices.SortStableFunc(all, func(a, b *checker.Violation) int {
		x, y := r.during(a).length(), r.during(b).length()
		if long := longest / 10 * 9; x >= long && y >= long {
			return cmp.Compare(a.Start, b.Start)
		}
		return cmp.Compare(y, x)
	})
	return all
}

// severity ranks violations: two holders at once above their consequences, a
// broken promise above an outlived lease.
func severity(p checker.Property, v *checker.Violation) int {
	rank := 1
	if overlaps(p) {
		rank += 2
	}
	if v.Class == checker.BrokenPromise {
		rank++
	}
	return rank
}
