package reports

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
)

// TestSafeGrants: holders of permits and readers may hold a lock at once, and "without overlap" is said only if
// exclusion was found to hold.
func TestSafeGrants(t *testing.T) {
	exclusion := checker.Result{Property: checker.Exclusion, Outcome: checker.Holds}
	permits := checker.Result{Property: checker.Permits, Outcome: checker.Holds, Counts: map[string]int64{"most_held": 3}}
	mutex, reader := hold{}, hold{Hold: checker.Hold{Reader: true}}
	permit := hold{Hold: checker.Hold{Permits: 2}}
	for want, test := range map[string]struct {
		holds   []hold
		results []checker.Result
	}{
		"2 grants without overlap": {[]hold{mutex, mutex}, []checker.Result{exclusion}},
		"2 grants":                 {[]hold{mutex, mutex}, nil},
		"2 grants without overlap of a writer with another client":                 {[]hold{mutex, reader}, []checker.Result{exclusion}},
		"2 grants of permits, at most 3 permits held at once, not more than exist": {[]hold{permit, permit}, []checker.Result{permits}},
		"1 grant of permits": {[]hold{permit}, []checker.Result{exclusion}},
		"1 grant without overlap; 1 grant of permits, at most 3 permits held at once, not more than exist": {
			[]hold{mutex, permit}, []checker.Result{exclusion, permits}},
	} {
		r := &Run{holds: test.holds, Judgement: checker.Judgement{Results: test.results}}
		if got := strings.Join(r.grants(), "; "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
