package lock

import (
	"testing"
	"time"
)

// TestHoldCountOfAMajority: neither a master that has missed a hold nor one that
// still has attempts that were given up decides on the count.
func TestHoldCountOfAMajority(t *testing.T) {
	for _, test := range []struct {
		counts []int
		owed   []int
		known  int
		want   int
	}{
		{[]int{1, 1, 1}, nil, 0, 1}, {[]int{1, 3, 1}, nil, 0, 1}, {[]int{2, 1, 2}, nil, 0, 2}, {[]int{1, 2}, nil, 0, 2},
		{[]int{4, 3, 2, 3, 3}, nil, 0, 3},
		{[]int{1, 2}, []int{0, 1}, 0, 1},       // the second has not heard of a release
		{[]int{2, 2}, []int{0, 1}, 0, 2},       // it has, and the answer is on its way
		{[]int{2, 2, 2}, []int{1, 1, 0}, 0, 2}, // so have two of three
		{[]int{3, 1, 1}, []int{1, 0, 0}, 0, 1}, {[]int{1, 1}, []int{5, 5}, 0, 1},
		{[]int{2, 2, 2}, []int{1, 1, 1}, 1, 1}, // none of the majority has heard of a release: a seed of redlock-always
		{[]int{2, 2, 2}, []int{1, 1, 1}, 2, 2}, // all have
		{[]int{1, 2}, nil, 1, 1},               // what was claimed and given up came late to the second
		{[]int{1, 2}, nil, 2, 2},               // the first has missed a hold
		{[]int{2, 2, 2}, nil, 1, 2},            // another client's hold is the owner's too
		{[]int{1, 1, 2}, nil, 2, 1}, {[]int{1, 2}, nil, 3, 2},
	} {
		tally := tally{known: test.known}
		for i, n := range test.counts {
			g := grant{ok: true, count: n}
			if test.owed != nil {
				g.owed = test.owed[i]
			}
			tally.count(vote[grant]{value: g})
		}
		if got := tally.holds(); got != test.want {
			t.Errorf("%v, of which %v owed, %d known, count as %d, want %d", test.counts, test.owed, test.known, got, test.want)
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

// What a client knows of its owners' holds ends with them, however they end.
func TestKnownHoldsEndWithTheHold(t *testing.T) {
	m := startMasters(t, 3, Options{})
	c := m.client
	outer := acquire(t, c.Mutex("k"), AcquireOptions{Lease: time.Minute})
	inner := acquire(t, c.Mutex("k"), AcquireOptions{Lease: time.Minute, Owner: outer.Owner()})
	if n := c.known.count("k", outer.Owner()); n != 2 || inner.Count() != 2 {
		t.Errorf("%d holds known, %d told, want 2", n, inner.Count())
	}
	release(t, inner)
	if n := c.known.count("k", outer.Owner()); n != 1 {
		t.Errorf("%d holds known after a release, want 1", n)
	}
	outer.lose()
	if err := outer.Release(t.Context()); err == nil {
		t.Error("a lost hold was released without an error")
	}
	if n := len(c.known.holds); n != 0 {
		t.Errorf("%d owners known after all holds have ended, want none", n)
	}
}
