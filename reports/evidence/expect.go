package evidence

import (
	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/expect"
)

// Expectations compares the run with the expectations of its scenario. A run that was not judged has no verdict.
func Expectations(r *Run) []checker.Comparison {
	j := r.Judgement
	if !r.Judged {
		j.Verdict = ""
	}
	return expect.Compare(j, r.Manifest.Expectation())
}

// Production is the meaning of the run in production, from its scenario; "" if the verdict is not the expected one.
func Production(r *Run) string {
	if len(r.Manifest.Expect) == 0 || !AsExpected(r) {
		return ""
	}
	return r.Manifest.Production
}

// AsExpected reports whether the run was judged and every expectation is met.
func AsExpected(r *Run) bool {
	for _, c := range Expectations(r) {
		if !c.Met {
			return false
		}
	}
	return r.Judged
}
