package lock

import "testing"

// TestHoldCountOfAMajority: neither a master that has missed a hold nor one that
// still has attempts that were given up decides on the count.
func TestHoldCountOfAMajority(t *testing.T) {
	for _, test := range []struct {
		counts []int
		owed   []int
		want   int
	}{
		{[]int{1, 1, 1}, nil, 1}, {[]int{1, 3, 1}, nil, 1}, {[]int{2, 1, 2}, nil, 2}, {[]int{1, 2}, nil, 2},
		{[]int{4, 3, 2, 3, 3}, nil, 3},
		{[]int{1, 2}, []int{0, 1}, 1},       // the second has not heard of a release
		{[]int{2, 2}, []int{0, 1}, 2},       // it has, and the answer is on its way
		{[]int{2, 2, 2}, []int{1, 1, 0}, 2}, // so have two of three
		{[]int{3, 1, 1}, []int{1, 0, 0}, 1}, {[]int{1, 1}, []int{5, 5}, 1},
	} {
		tally := tally{}
		for i, n := range test.counts {
			g := grant{ok: true, count: n}
			if test.owed != nil {
				g.owed = test.owed[i]
			}
			tally.count(vote[grant]{value: g})
		}
		if got := tally.holds(); got != test.want {
			t.Errorf("%v, of which %v owed, count as %d, want %d", test.counts, test.owed, got, test.want)
		}
	}
}

// A slow master keeps a claim that it has not heard the end of: what it counts
// at a release is not what the owner holds.
func TestReleaseCountsWhatMostMastersCount(t *testing.T) {
	for _, test := range []struct {
		counts []int
		want   int
	}{
		{[]int{0, 0, 1}, 0}, {[]int{1, 0, 0}, 0}, {[]int{1, 0, 1}, 1}, {[]int{2, 2, 2}, 2}, {[]int{0, 3}, 0}, {[]int{1}, 1},
	} {
		if got := middle(test.counts); got != test.want {
			t.Errorf("middle(%v) = %d, want %d", test.counts, got, test.want)
		}
	}
}
