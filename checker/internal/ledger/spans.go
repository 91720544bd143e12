package ledger

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// NoticeAt is the notice that an event is; nil if it is none.
func (v *View) NoticeAt(event int32) *history.Notice {
	n, is := slices.BinarySearchFunc(v.H.Notices, event, func(n history.Notice, at int32) int {
		return cmp.Compare(n.Index, at)
	})
	if !is {
		return nil
	}
	return &v.H.Notices[n]
}

// LossReported reports whether the notice of a loss ended a hold.
func (v *View) LossReported(h *Hold) bool {
	n := v.NoticeAt(h.EndEvent)
	return n != nil && n.F == history.Lost
}

// WasClosed reports whether the lock object was closed during an acquire.
func (v *View) WasClosed(span int32) bool {
	return slices.ContainsFunc(v.H.Closings, func(c history.Closing) bool { return c.Span == span })
}

// Excludes reports whether a key has one holder at a time, except for readers.
func (v *View) Excludes(key int32) bool {
	limit := v.H.Limit(key)
	return limit == 0 || limit == 1
}

// findCompleted finds the time of the completion of each operation of unknown outcome.
func (v *View) findCompleted() map[int32]time.Duration {
	completed := make(map[int32]time.Duration, len(v.H.Unknown))
	for _, u := range v.H.Unknown {
		completed[u.Span] = u.Time
	}
	return completed
}

// OfSeveral reports whether an operation belongs to a request of several keys.
func (v *View) OfSeveral(span int32) bool {
	return v.H.Spans[span].Part || v.MultiAcquires()[span] != nil
}

// findMultiAcquires finds the acquires of several keys: the spans of each by the first.
func (v *View) findMultiAcquires() (of map[int32][]int32) {
	var last map[history.Process]int32 // the first span of the latest operation of a process
	for _, i := range v.Rare {
		if v.H.Spans[i].Part {
			last = make(map[history.Process]int32)
			break
		}
	}
	if last == nil {
		return nil
	}
	of = make(map[int32][]int32)
	for i, s := range refs.All(v.H.Spans) {
		if !s.Part {
			last[s.Process] = i
			continue
		}
		first, known := last[s.Process]
		if !known || s.Op != history.OpAcquire {
			continue
		}
		if len(of[first]) == 0 {
			of[first] = []int32{first}
		}
		of[first] = append(of[first], i)
	}
	return of
}

// ListSpans appends to each of lists the operations of its owner and key that satisfy is, in the order of their calls.
func (v *View) ListSpans(lists map[OwnerKey][]int32, is func(s *history.Span) bool) {
	for i, s := range refs.All(v.H.Spans) {
		at := Of(s)
		if list, wanted := lists[at]; wanted && is(s) {
			lists[at] = append(list, i)
		}
	}
}

// InFlight visits the spans that were in flight at some time of an interval: first spans of unknown outcome, which have
// no end. None of the others lasts longer than the longest one.
func (v *View) InFlight(during segment.Segment) iter.Seq2[int32, *history.Span] {
	return func(yield func(int32, *history.Span) bool) {
		for i, s := range refs.At(v.H.Spans, v.Rare) {
			if s.Outcome == history.Info && s.Call <= during.Until && s.Return >= during.From && !yield(i, s) {
				return
			}
		}
		from := during.From - v.longestSpan()
		n := sort.Search(len(v.H.Spans), func(n int) bool { return v.H.Spans[n].Call >= from })
		for ; n < len(v.H.Spans) && v.H.Spans[n].Call <= during.Until; n++ {
			s := &v.H.Spans[n]
			if s.Outcome != history.Info && s.Return >= during.From && !yield(int32(n), s) {
				return
			}
		}
	}
}

// findLongestSpan is the time that the longest operation of known outcome took.
func (v *View) findLongestSpan() (longest time.Duration) {
	for _, s := range refs.All(v.H.Spans) {
		if s.Outcome != history.Info {
			longest = max(longest, s.Return-s.Call)
		}
	}
	return longest
}
