package checker

import (
	"iter"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file finds the times in which a key was certainly free, on which recovery, wake-up and leak are judged, and the
// acquires that waited in them. A key is free while no hold can exist, by the longest possible extent of each hold (see
// extents.go).

// cause is why a key was free.
type cause uint8

const (
	neverHeld           cause = iota // it had not been held yet
	afterRelease                     // the last hold was released
	afterExpiry                      // the last hold was not released: its lease ended
	afterUnknownAcquire              // an acquire of unknown outcome may have been the last hold
)

// freeInterval is a time in which no client can have held a key.
type freeInterval struct {
	segment
	key   int32
	last  int32 // the last hold before it or, if cause is afterUnknownAcquire, the span of that acquire; -1: there is none
	cause cause
}

// wait is an acquire that was in flight in a gap: the index of the gap in freeTimes, and the span of the acquire.
type wait struct{ gap, span int32 }

// freeTimes are the times in which keys were free, and the acquires that waited in them.
type freeTimes struct {
	gaps    []freeInterval // longer than the slack, by key and time; then gaps of acquires of several keys
	first   []int          // by key: where its gaps begin; one more at the end
	free    []freeInterval // by key: the time from the end of its last hold to the end of the run
	extents *extents
	waits   []wait // acquires that were in flight in a gap for longer than the slack, by gap

	nothingHeld func() []segment // see [freeTimes.timesNothingHeld]
}

// findFreeTimes finds the gaps longer than slack.
func (v *view) findFreeTimes(slack time.Duration) *freeTimes {
	d := &freeTimes{free: make([]freeInterval, len(v.byKey)), first: make([]int, len(v.byKey)+1), extents: newExtents(v)}
	d.nothingHeld = sync.OnceValue(func() []segment { return d.timesNothingHeld(v, slack) })
	for key := range v.byKey {
		d.addKey(d.extents, int32(key), slack)
	}
	d.matchWaits(v, slack)
	return d
}

// addKey finds the gaps of a key: it merges its holds with the possible holds of extents, in the order of their
// beginnings.
func (d *freeTimes) addKey(e *extents, key int32, slack time.Duration) {
	holds, possible := e.byKey[key], e.possible[key]
	now := freeInterval{segment: segment{0, 0}, key: key, last: -1}
	hold := func(from, until time.Duration, last int32, why cause) {
		if from-now.from > slack {
			now.until = from
			d.gaps = append(d.gaps, now)
		}
		if until >= now.from {
			now = freeInterval{segment: segment{until, never}, key: key, last: last, cause: why}
		}
	}
	for i, h := range refsAt(e.holds, holds) {
		for len(possible) > 0 && possible[0].from <= h.from {
			hold(possible[0].from, possible[0].until, possible[0].last, possible[0].cause)
			possible = possible[1:]
		}
		if h.freeBy < never {
			hold(h.from, h.freeBy, i, afterRelease)
		} else {
			hold(h.from, e.leaseEnd(i), i, afterExpiry)
		}
	}
	for _, x := range possible {
		hold(x.from, x.until, x.last, x.cause)
	}
	if now.until = e.h.End; now.until-now.from > slack {
		d.gaps = append(d.gaps, now)
	}
	d.free[key] = now
}

// matchWaits finds the acquires that waited in the gaps. An acquire of unknown outcome does not count, because its
// client may have exited.
func (d *freeTimes) matchWaits(v *view, slack time.Duration) {
	several := v.multiAcquires()
	if len(d.gaps) == 0 && several == nil {
		return
	}
	first := d.first
	for _, g := range d.gaps {
		first[g.key+1]++
	}
	for k := range v.byKey {
		first[k+1] += first[k]
	}
	own := d.gaps
	gaps := func(key int32) []freeInterval { return own[first[key]:first[key+1]] }
	add := func(i int32) {
		s := &v.h.Spans[i]
		if of := several[i]; of != nil {
			d.matchMultiWaits(v, of, slack, gaps)
		}
		if s.Part || several[i] != nil {
			return
		}
		limit := v.h.Limit(s.Key)
		if s.Op != history.OpAcquire || s.Return-s.Call <= slack || (limit > 0 && s.Permits > limit) {
			return
		}
		gaps := gaps(s.Key)
		n := sort.Search(len(gaps), func(n int) bool { return gaps[n].until-s.Call > slack })
		for ; n < len(gaps) && s.Return-gaps[n].from > slack; n++ {
			d.waits = append(d.waits, wait{int32(first[s.Key] + n), i})
		}
	}
	v.longWaits(slack, add)
	slices.SortFunc(d.waits, byGap)
}

// gapsOf visits the gaps of a key that overlap s, by time; then the gaps of acquires of several keys.
func (d *freeTimes) gapsOf(key int32, s segment) iter.Seq[*freeInterval] {
	return func(yield func(*freeInterval) bool) {
		own := d.gaps[d.first[key]:d.first[key+1]]
		n := sort.Search(len(own), func(n int) bool { return own[n].until >= s.from })
		for ; n < len(own) && own[n].from <= s.until; n++ {
			if !yield(&own[n]) {
				return
			}
		}
		for _, g := range refs(d.gaps[d.first[len(d.first)-1]:]) {
			if g.key == key && !yield(g) {
				return
			}
		}
	}
}

// longWaits visits the operations that succeeded after more than slack, and the acquires that timed out.
func (v *view) longWaits(slack time.Duration, visit func(i int32)) {
	for i, s := range refs(v.h.Spans) {
		if s.Return-s.Call > slack && s.Outcome == history.OK {
			visit(i)
		}
	}
	for _, list := range [][]int32{v.h.TimedOut, v.h.Unanswered, v.h.OneHeld} {
		for _, i := range list {
			visit(i)
		}
	}
}

// leaseOver is when the key of a finding became free because a lease ended.
func (v *view) leaseOver(f finding) time.Duration {
	for _, g := range v.freeTimes().gaps {
		if g.last == f.x && g.cause == afterExpiry && g.from <= f.start && f.end <= g.until {
			return g.from
		}
	}
	return f.start
}

// spanOf is the acquire behind freeInterval.last of a key.
func (v *view) spanOf(key, last int32) int32 {
	if v.freeTimes().free[key].cause == afterUnknownAcquire {
		return last
	}
	return v.holds[last].span
}
