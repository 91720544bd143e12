package lock

import "testing"

// TestHoldCountOfAMajority: neither a master that has missed a hold nor one that
// still has attempts that were given up decides on the count.
func TestHoldCountOfAMajority(t *testing.T) {
	for _, test := range []struct {
		counts []int
		want   int
	}{{[]int{1, 1, 1}, 1}, {[]int{1, 3, 1}, 1}, {[]int{2, 1, 2}, 2}, {[]int{1, 2}, 2}, {[]int{4, 3, 2, 3, 3}, 3}} {
		tally := tally{}
		for _, n := range test.counts {
			tally.count(vote[grant]{value: grant{ok: true, count: n}})
		}
		if got := tally.holds(); got != test.want {
			t.Errorf("%v count as %d, want %d", test.counts, got, test.want)
		}
	}
}
