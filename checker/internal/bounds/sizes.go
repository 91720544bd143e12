package bounds

import (
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// This file is about semaphores whose size changes. A resize takes effect at some instant between its invocation and
// its return; one of unknown outcome at any time after its invocation, or never. So of an instant it is only known
// which sizes may have been in force. What a change by a number of permits sets is in its reply; one of unknown outcome
// leaves any size.

// sizeTime is a time in which a size may have been in force.
type sizeTime struct {
	segment.Segment
	least, most int64
	reach       time.Duration // the latest end of this one and of those before it
}

// resized is how the size of a semaphore changed.
type resized struct {
	Times []sizeTime    // by their beginnings
	known time.Duration // when the size with which it was created was certainly replaced
}

// findResizes finds the semaphores that were resized, by key.
func (v *View) findResizes() map[int32]resized {
	spans := make(map[int32][]*history.Span)
	for _, s := range refs.At(v.H.Spans, v.Rare) {
		if SetsSize(s) && s.Outcome != history.Fail && v.H.Limit(s.Key) > 0 {
			spans[s.Key] = append(spans[s.Key], s)
		}
	}
	all := make(map[int32]resized, len(spans))
	for key, list := range spans {
		all[key] = newResized(list, int64(v.H.Limit(key)))
	}
	return all
}

// newResized finds the times of the sizes that some resizes set, which are in the order of their invocations. A size is
// certainly over when another resize has returned that was invoked after the return of the resize that set it. limit is
// the greatest known size.
func newResized(resizes []*history.Span, limit int64) resized {
	replaced := make([]time.Duration, len(resizes)+1) // the earliest return of this one and of those after it
	replaced[len(resizes)] = segment.Never
	for n, s := range slices.Backward(resizes) {
		replaced[n] = replaced[n+1]
		if s.Outcome == history.OK {
			replaced[n] = min(replaced[n], s.Return)
		}
	}
	r := resized{known: replaced[0]}
	reach, unknown := time.Duration(0), int64(0)
	for _, s := range resizes {
		n := sort.Search(len(resizes), func(n int) bool { return resizes[n].Call >= s.Return })
		reach = max(reach, replaced[n])
		t := sizeTime{Segment: segment.Of(s.Call, replaced[n]), least: int64(s.Asked), most: int64(s.Asked), reach: reach}
		switch {
		case s.Op == history.OpResize:
		case s.Outcome == history.OK:
			t.least, t.most = int64(s.Count), int64(s.Count)
		default:
			unknown += max(0, ChangeBy(s))
			t.least, t.most = 0, limit+unknown
		}
		r.Times = append(r.Times, t)
	}
	return r
}

// SizesIn are the least and the greatest size of a semaphore that may have been in force at some instant of s. Of the
// time before the first resize only the greatest size of all is known.
func (v *View) SizesIn(key int32, s segment.Segment) (least, most int64) {
	limit := int64(v.H.Limit(key))
	r, is := v.Resizes()[key]
	switch {
	case !is:
		return limit, limit
	case s.From <= r.known:
		return 0, limit
	}
	least = limit
	n := sort.Search(len(r.Times), func(n int) bool { return r.Times[n].From > s.Until })
	for n--; n >= 0 && r.Times[n].reach >= s.From; n-- {
		if t := &r.Times[n]; t.Until >= s.From {
			least, most = min(least, t.least), max(most, t.most)
		}
	}
	return least, most
}

// SetsSize reports whether s sets or changes the number of permits of a semaphore.
func SetsSize(s *history.Span) bool {
	return s.Op == history.OpResize || s.Op == history.OpAddPermits || s.Op == history.OpDropPermits
}

// ChangeBy is by how many permits s changes a semaphore.
func ChangeBy(s *history.Span) int64 {
	if s.Op == history.OpDropPermits {
		return -int64(s.Asked)
	}
	return int64(s.Asked)
}
