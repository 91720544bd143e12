package reports

import (
	"iter"

	"github.com/lockchaos/lockchaos/history"
)

// each are pointers to the elements of a slice.
func each[T any](all []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range all {
			if !yield(&all[i]) {
				return
			}
		}
	}
}

// firstOf is the first element that ok accepts; nil if there is none.
func firstOf[T any](all []T, ok func(*T) bool) *T {
	for x := range each(all) {
		if ok(x) {
			return x
		}
	}
	return nil
}

// lastOf is the last element that ok accepts; nil if there is none.
func lastOf[T any](all []T, ok func(*T) bool) *T {
	for i := len(all) - 1; i >= 0; i-- {
		if ok(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// allOf are the elements that ok accepts.
func allOf[T any](all []T, ok func(*T) bool) (found []*T) {
	for x := range each(all) {
		if ok(x) {
			found = append(found, x)
		}
	}
	return found
}

// taking reports whether an operation is one that may begin a hold.
func taking(s *history.Span) bool { return s.Op == history.OpAcquire || s.Op == history.OpTry }

// clientIn is the client of a process.
func (r *Run) clientIn(p history.Process) int { return p.Client(r.History.Clients) }

// who is the name of the client of a process.
func (r *Run) who(p history.Process) string { return clientName(r.clientIn(p)) }
