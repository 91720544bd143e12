package checker

import "iter"

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
