package bounds

import (
	"iter"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// This file finds the times in which a key was certainly free, on which recovery, wake-up and leak are judged, and the
// acquires that waited in them. A key is free while no hold can exist, by the longest possible extent of each hold (see
// extents.go).

// Cause is why a key was free.
type Cause uint8

const (
	NeverHeld           Cause = iota // it had not been held yet
	AfterRelease                     // the last hold was released
	AfterExpiry                      // the last hold was not released: its lease ended
	AfterUnknownAcquire              // an acquire of unknown outcome may have been the last hold
)

// freeInterval is a time in which no client can have held a key.
type freeInterval struct {
	segment.Segment
	Key   int32
	Last  int32 // the last hold before it or, if cause is AfterUnknownAcquire, the span of that acquire; -1: there is none
	Cause Cause
}

// wait is an acquire that was in flight in a gap: the index of the gap in FreeTimes, and the span of the acquire.
type wait struct{ Gap, Span int32 }

// FreeTimes are the times in which keys were free, and the acquires that waited in them.
type FreeTimes struct {
	Gaps    []freeInterval // longer than the slack, by key and time; then gaps of acquires of several keys
	first   []int          // by key: where its gaps begin; one more at the end
	Free    []freeInterval // by key: the time from the end of its last hold to the end of the run
	Extents *Extents
	Waits   []wait // acquires that were in flight in a gap for longer than the slack, by gap

	nothingHeld func() []segment.Segment // see [FreeTimes.timesNothingHeld]
}

// findFreeTimes finds the gaps longer than slack.
func (v *View) findFreeTimes(slack time.Duration) *FreeTimes {
	d := &FreeTimes{Free: make([]freeInterval, len(v.ByKey)), first: make([]int, len(v.ByKey)+1), Extents: NewExtents(v)}
	d.nothingHeld = sync.OnceValue(func() []segment.Segment { return d.timesNothingHeld(v, slack) })
	for key := range v.ByKey {
		d.addKey(d.Extents, int32(key), slack)
	}
	d.matchWaits(v, slack)
	return d
}

// addKey finds the gaps of a key: it merges its holds with the possible holds of extents, in the order of their
// beginnings.
func (d *FreeTimes) addKey(e *Extents, key int32, slack time.Duration) {
	holds, possible := e.ByKey[key], e.Possible[key]
	now := freeInterval{Segment: segment.Of(0, 0), Key: key, Last: -1}
	hold := func(from, until time.Duration, last int32, why Cause) {
		if from-now.From > slack {
			now.Until = from
			d.Gaps = append(d.Gaps, now)
		}
		if until >= now.From {
			now = freeInterval{Segment: segment.Of(until, segment.Never), Key: key, Last: last, Cause: why}
		}
	}
	for i, h := range refs.At(e.Holds, holds) {
		for len(possible) > 0 && possible[0].From <= h.From {
			hold(possible[0].From, possible[0].Until, possible[0].Last, possible[0].Cause)
			possible = possible[1:]
		}
		if h.FreeBy < segment.Never {
			hold(h.From, h.FreeBy, i, AfterRelease)
		} else {
			hold(h.From, e.LeaseEnd(i), i, AfterExpiry)
		}
	}
	for _, x := range possible {
		hold(x.From, x.Until, x.Last, x.Cause)
	}
	if now.Until = e.H.End; now.Until-now.From > slack {
		d.Gaps = append(d.Gaps, now)
	}
	d.Free[key] = now
}

// matchWaits finds the acquires that waited in the gaps. An acquire of unknown outcome does not count, because its
// client may have exited.
func (d *FreeTimes) matchWaits(v *View, slack time.Duration) {
	several := v.MultiAcquires()
	if len(d.Gaps) == 0 && several == nil {
		return
	}
	first := d.first
	for _, g := range d.Gaps {
		first[g.Key+1]++
	}
	for k := range v.ByKey {
		first[k+1] += first[k]
	}
	own := d.Gaps
	gaps := func(key int32) []freeInterval { return own[first[key]:first[key+1]] }
	add := func(i int32) {
		s := &v.H.Spans[i]
		if of := several[i]; of != nil {
			d.matchMultiWaits(v, of, slack, gaps)
		}
		if v.OfSeveral(i) {
			return
		}
		limit := v.H.Limit(s.Key)
		if s.Op != history.OpAcquire || s.Return-s.Call <= slack || (limit > 0 && s.Permits > limit) {
			return
		}
		gaps := gaps(s.Key)
		n := sort.Search(len(gaps), func(n int) bool { return gaps[n].Until-s.Call > slack })
		for ; n < len(gaps) && s.Return-gaps[n].From > slack; n++ {
			d.Waits = append(d.Waits, wait{int32(first[s.Key] + n), i})
		}
	}
	v.LongWaits(slack, add)
	slices.SortFunc(d.Waits, byGap)
}

// GapsOf visits the gaps of a key that overlap s, by time; then the gaps of acquires of several keys.
func (d *FreeTimes) GapsOf(key int32, s segment.Segment) iter.Seq[*freeInterval] {
	return func(yield func(*freeInterval) bool) {
		own := d.Gaps[d.first[key]:d.first[key+1]]
		n := sort.Search(len(own), func(n int) bool { return own[n].Until >= s.From })
		for ; n < len(own) && own[n].From <= s.Until; n++ {
			if !yield(&own[n]) {
				return
			}
		}
		for _, g := range refs.All(d.Gaps[d.first[len(d.first)-1]:]) {
			if g.Key == key && !yield(g) {
				return
			}
		}
	}
}

// LongWaits visits the operations that succeeded after more than slack, and the acquires that timed out.
func (v *View) LongWaits(slack time.Duration, visit func(i int32)) {
	for i, s := range refs.All(v.H.Spans) {
		if s.Return-s.Call > slack && s.Outcome == history.OK {
			visit(i)
		}
	}
	for _, list := range [][]int32{v.H.TimedOut, v.H.Unanswered, v.H.OneHeld} {
		for _, i := range list {
			visit(i)
		}
	}
}

// SpanOf is the acquire behind freeInterval.last of a key.
func (v *View) SpanOf(key, last int32) int32 {
	if v.FreeTimes().Free[key].Cause == AfterUnknownAcquire {
		return last
	}
	return v.Holds[last].Span
}
