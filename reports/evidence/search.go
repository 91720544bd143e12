package evidence

import (
	"iter"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// Each are pointers to the elements of a slice.
func Each[T any](all []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range all {
			if !yield(&all[i]) {
				return
			}
		}
	}
}

// FirstOf is the first element that ok accepts; nil if there is none.
func FirstOf[T any](all []T, ok func(*T) bool) *T {
	for x := range Each(all) {
		if ok(x) {
			return x
		}
	}
	return nil
}

// LastOf is the last element that ok accepts; nil if there is none.
func LastOf[T any](all []T, ok func(*T) bool) *T {
	for i := len(all) - 1; i >= 0; i-- {
		if ok(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// AllOf are the elements that ok accepts.
func AllOf[T any](all []T, ok func(*T) bool) (found []*T) {
	for x := range Each(all) {
		if ok(x) {
			found = append(found, x)
		}
	}
	return found
}

// Taking reports whether an operation may begin a hold.
func Taking(s *history.Span) bool { return s.Op == history.OpAcquire || s.Op == history.OpTry }

// Completed is when the client of an operation learned its outcome, or that it is unknown; history.Infinity if no event
// says so.
func (r *Run) Completed(s *history.Span) time.Duration {
	if t, unknown := r.learned[s.Ended]; unknown {
		return t
	}
	return s.Return
}

// ClientIn is the client of a process.
func (r *Run) ClientIn(p history.Process) int { return p.Client(r.History.Clients) }

// Who is the name of the client of a process.
func (r *Run) Who(p history.Process) string { return ClientName(r.ClientIn(p)) }
