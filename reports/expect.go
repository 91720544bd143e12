package reports

import "github.com/lockchaos/lockchaos/checker"

// expectations compares the run with what its scenario expects. A run that was not judged has no verdict.
func expectations(r *Run) []checker.Comparison {
	j := r.Judgement
	if !r.Judged {
		j.Verdict = ""
	}
	return checker.Compare(j, r.Manifest.Expectation())
}

// asExpected reports whether the run was judged and every expectation is met.
func asExpected(r *Run) bool {
	for _, c := range expectations(r) {
		if !c.Met {
			return false
		}
	}
	return r.Judged
}
