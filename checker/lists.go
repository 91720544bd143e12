package checker

import (
	"iter"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// refs iterates over a list: the index of each element and a reference to it, without a copy.
func refs[T any](list []T) iter.Seq2[int32, *T] {
	return func(yield func(int32, *T) bool) {
		for i := range list {
			if !yield(int32(i), &list[i]) {
				return
			}
		}
	}
}

// refsAt iterates over the elements of a list at the given indices, as refs does, in the order of the indices.
func refsAt[T any](list []T, indices []int32) iter.Seq2[int32, *T] {
	return func(yield func(int32, *T) bool) {
		for _, i := range indices {
			if !yield(i, &list[i]) {
				return
			}
		}
	}
}

// inFlight visits the spans that were in flight at some time of an interval: first spans of unknown outcome, which have
// no end. None of the others lasts longer than the longest one.
func (v *view) inFlight(during segment) iter.Seq2[int32, *history.Span] {
	return func(yield func(int32, *history.Span) bool) {
		for i, s := range refsAt(v.h.Spans, v.rare) {
			if s.Outcome == history.Info && s.Call <= during.until && s.Return >= during.from && !yield(i, s) {
				return
			}
		}
		from := during.from - v.longestSpan()
		n := sort.Search(len(v.h.Spans), func(n int) bool { return v.h.Spans[n].Call >= from })
		for ; n < len(v.h.Spans) && v.h.Spans[n].Call <= during.until; n++ {
			s := &v.h.Spans[n]
			if s.Outcome != history.Info && s.Return >= during.from && !yield(int32(n), s) {
				return
			}
		}
	}
}

// findLongestSpan is the time that the longest operation of known outcome took.
func (v *view) findLongestSpan() (longest time.Duration) {
	for _, s := range refs(v.h.Spans) {
		if s.Outcome != history.Info {
			longest = max(longest, s.Return-s.Call)
		}
	}
	return longest
}

// countingSort sorts the numbers below n by their group, and keeps the order within each: group g is
// order[first[g]:first[g+1]].
func countingSort(groups, n int, of func(i int32) int32) (order, first []int32) {
	first = make([]int32, groups+1)
	for i := range int32(n) {
		first[of(i)+1]++
	}
	for g := range groups {
		first[g+1] += first[g]
	}
	order = make([]int32, n)
	next := slices.Clone(first)
	for i := range int32(n) {
		g := of(i)
		order[next[g]] = i
		next[g]++
	}
	return order, first
}
