// Package refs visits the elements of lists by reference, and sorts them by groups.
package refs

import (
	"iter"
	"slices"
)

// All iterates over a list: the index of each element and a reference to it, without a copy.
func All[T any](list []T) iter.Seq2[int32, *T] {
	return func(yield func(int32, *T) bool) {
		for i := range list {
			if !yield(int32(i), &list[i]) {
				return
			}
		}
	}
}

// At iterates over the elements of a list at the given indices, as refs does, in the order of the indices.
func At[T any](list []T, indices []int32) iter.Seq2[int32, *T] {
	return func(yield func(int32, *T) bool) {
		for _, i := range indices {
			if !yield(i, &list[i]) {
				return
			}
		}
	}
}

// CountingSort sorts the numbers below n by their group, and keeps the order within each: group g is
// order[first[g]:first[g+1]].
func CountingSort(groups, n int, of func(i int32) int32) (order, first []int32) {
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

// Indices of no element.
const (
	None   = int32(-1)
	AnyKey = int32(-1) // stands for all keys
)
