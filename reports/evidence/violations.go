package evidence

import (
	"iter"

	"github.com/lockchaos/lockchaos/checker"
)

// Violations are all violations that the checkers kept, in the order of the properties.
func (r *Run) Violations() iter.Seq2[*checker.Result, *checker.Violation] {
	return func(yield func(*checker.Result, *checker.Violation) bool) {
		for res := range Each(r.Judgement.Results) {
			for v := range Each(res.Violations) {
				if !yield(res, v) {
					return
				}
			}
		}
	}
}

// IsDrawn reports whether the violations of a result are drawn: a run that tested too little has no place in time.
func IsDrawn(res *checker.Result) bool {
	return res.Outcome == checker.Violated && res.Property != checker.Exercised
}

// Overlaps reports whether violations of p are simultaneous holds.
func Overlaps(p checker.Property) bool {
	return p == checker.Exclusion || p == checker.LeaseExclusion || p == checker.Permits || p == checker.ReadersWriter
}

// During is the interval of a violation; without an end it ends with the history.
func (r *Run) During(v *checker.Violation) Interval {
	return Interval{v.Start, max(v.Start, min(v.End, r.History.End))}
}

// PropertyOf is the property of one of the run's violations.
func (r *Run) PropertyOf(v *checker.Violation) checker.Property {
	for res, found := range r.Violations() {
		if found == v {
			return res.Property
		}
	}
	return ""
}
