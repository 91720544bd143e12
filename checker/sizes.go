package checker

import (
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file is about semaphores whose size changes. A resize takes effect at some instant between its invocation and
// its return; one of unknown outcome at any time after its invocation, or never. So of an instant it is only known
// which sizes may have been in force.

// sizeTime is a time in which a size may have been in force.
type sizeTime struct {
	segment
	permits int32
	reach   time.Duration // the latest end of this one and of those before it
}

// resized is how the size of a semaphore changed.
type resized struct {
	times []sizeTime    // by their beginnings
	known time.Duration // when the size with which it was created was certainly replaced
}

// sizeState is computed once; see [view.resizes].
type sizeState struct {
	sizeOnce sync.Once
	resized  map[int32]resized
}

// resizes are the semaphores that were resized, by key.
func (v *view) resizes() map[int32]resized {
	v.sizeOnce.Do(func() {
		spans := make(map[int32][]*history.Span)
		for i := range v.h.Spans {
			s := &v.h.Spans[i]
			if s.Op == history.OpResize && s.Outcome != history.Fail && v.h.Limit(s.Key) > 0 {
				spans[s.Key] = append(spans[s.Key], s)
			}
		}
		v.resized = make(map[int32]resized, len(spans))
		for key, list := range spans {
			v.resized[key] = newResized(list)
		}
	})
	return v.resized
}

// newResized finds the times of the sizes that some resizes set, which are in the order of their invocations. A size
// is certainly over when another resize has returned that was invoked after the return of the one that set it.
func newResized(resizes []*history.Span) resized {
	replaced := make([]time.Duration, len(resizes)+1) // the earliest return of this one and of those after it
	replaced[len(resizes)] = never
	for n, s := range slices.Backward(resizes) {
		replaced[n] = replaced[n+1]
		if s.Outcome == history.OK {
			replaced[n] = min(replaced[n], s.Return)
		}
	}
	r := resized{known: replaced[0]}
	reach := time.Duration(0)
	for _, s := range resizes {
		n := sort.Search(len(resizes), func(n int) bool { return resizes[n].Call >= s.Return })
		reach = max(reach, replaced[n])
		r.times = append(r.times, sizeTime{segment{s.Call, replaced[n]}, s.Asked, reach})
	}
	return r
}

// sizesIn are the least and the greatest size of a semaphore that may have been in force at some instant of s. Of the
// time before the first resize only the greatest size of all is known.
func (v *view) sizesIn(key int32, s segment) (least, most int64) {
	limit := int64(v.h.Limit(key))
	r, is := v.resizes()[key]
	switch {
	case !is:
		return limit, limit
	case s.from <= r.known:
		return 0, limit
	}
	least = limit
	n := sort.Search(len(r.times), func(n int) bool { return r.times[n].from > s.until })
	for n--; n >= 0 && r.times[n].reach >= s.from; n-- {
		if t := &r.times[n]; t.until >= s.from {
			least, most = min(least, int64(t.permits)), max(most, int64(t.permits))
		}
	}
	return least, most
}
