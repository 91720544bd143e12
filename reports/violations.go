package reports

import (
	"iter"

	"github.com/lockchaos/lockchaos/checker"
)

// violations are all violations that the checkers kept, in the order of the properties.
func (r *Run) violations() iter.Seq2[*checker.Result, *checker.Violation] {
	return func(yield func(*checker.Result, *checker.Violation) bool) {
		for res := range each(r.Judgement.Results) {
			for v := range each(res.Violations) {
				if !yield(res, v) {
					return
				}
			}
		}
	}
}

// isDrawn reports whether the violations of a result are drawn: a run that tested too little has no place in time.
func isDrawn(res *checker.Result) bool {
	return res.Outcome == checker.Violated && res.Property != checker.Exercised
}

// overlaps reports whether violations of p are simultaneous holds.
func overlaps(p checker.Property) bool {
	return p == checker.Exclusion || p == checker.LeaseExclusion || p == checker.Permits || p == checker.ReadersWriter
}

// during is the interval of a violation; without an end it ends with the history.
func (r *Run) during(v *checker.Violation) interval {
	return interval{v.Start, max(v.Start, min(v.End, r.History.End))}
}

// propertyOf is the property of one of the run's violations.
func (r *Run) propertyOf(v *checker.Violation) checker.Property {
	for res, found := range r.violations() {
		if found == v {
			return res.Property
		}
	}
	return ""
}
