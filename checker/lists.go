package checker

import "iter"

// every goes through the elements of a list, each by its index, without a copy.
func every[T any](list []T) iter.Seq2[int32, *T] {
	return func(yield func(int32, *T) bool) {
		for i := range list {
			if !yield(int32(i), &list[i]) {
				return
			}
		}
	}
}

// those goes through those elements of a list that have some indices, in their order.
func those[T any](list []T, indices []int32) iter.Seq2[int32, *T] {
	return func(yield func(int32, *T) bool) {
		for _, i := range indices {
			if !yield(i, &list[i]) {
				return
			}
		}
	}
}
