// Package waiting finds the waits that nothing in the history explains.
package waiting

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// This file finds the times at which a shared lock certainly had capacity for a request: a semaphore, enough permits
// that nobody can have held; a readers-writer lock, no writer. bounds/free_times.go does the same for locks with one
// holder. Both use the longest possible intervals.
//
// A lock may serve its waiters in any order, so whether a request must be granted depends on the others: the lock may
// reserve permits for a large request that came first, and a waiting writer may keep readers out. Therefore a try must
// be granted only permits that no other request can take, and a waiter only if each of the others would fit as well
// (unless the lock states that small requests pass large ones).

// Occupancy is the share of a lock that a hold or a request occupies, and the longest time for which it may do so.
type Occupancy struct {
	segment.Segment
	permits int64
	writer  bool
}

func NewOccupancy(s *history.Span, from, until time.Duration) Occupancy {
	return Occupancy{segment.Of(from, until), int64(s.Permits), s.Write}
}

// SharedKey is a key that several owners may hold at once: a semaphore, or one with readers.
type SharedKey struct {
	Key       int32
	Semaphore bool
	Requests  []int32 // acquires and tries
}

// SharedKeys are the keys that several owners may hold at once, in their order.
func SharedKeys(v *bounds.View) (all []SharedKey) {
	at := make([]int32, len(v.H.Keys)) // by key: 1 + index into all
	share := func(key int32) {
		if limit := v.H.Limit(key); at[key] == 0 && limit >= 0 {
			all = append(all, SharedKey{Key: key, Semaphore: limit > 0})
			at[key] = int32(len(all))
		}
	}
	for key := range at {
		if v.H.Limit(int32(key)) > 0 {
			share(int32(key))
		}
	}
	for _, s := range refs.At(v.H.Spans, v.Rare) {
		if !s.Write && excuse.IsAcquire(s.Op) {
			share(s.Key)
		}
	}
	if len(all) == 0 {
		return nil
	}
	for i, s := range refs.All(v.H.Spans) {
		if n := at[s.Key]; n > 0 && excuse.IsAcquire(s.Op) {
			all[n-1].Requests = append(all[n-1].Requests, i)
		}
	}
	slices.SortFunc(all, func(a, b SharedKey) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// possiblyHeld are the longest possible times of all holds of a key, certain or possible. A hold counts from the
// return of its acquire or, if early, from its invocation. One that was not released counts until late after its lease.
func possiblyHeld(e *bounds.Extents, key int32, early bool, late time.Duration) (all []Occupancy) {
	for i, h := range refs.At(e.Holds, e.ByKey[key]) {
		from := h.From
		if early {
			from = h.Asked
		}
		all = append(all, NewOccupancy(&e.H.Spans[h.Span], from, HeldUntil(e, i, late)))
	}
	for _, x := range e.Possible[key] {
		span := x.Last
		if x.Cause != bounds.AfterUnknownAcquire {
			span = e.Holds[x.Last].Span
		}
		all = append(all, NewOccupancy(&e.H.Spans[span], x.From, segment.Later(x.Until, late)))
	}
	return all
}

// HeldUntil is the latest possible end of hold i: late after its lease, unless it was certainly released. What its
// owner holds in the other mode does not prolong it.
func HeldUntil(e *bounds.Extents, i int32, late time.Duration) time.Duration {
	if h := &e.Holds[i]; h.FreeBy != segment.Never && !h.Ambiguous {
		return h.FreeBy
	}
	return segment.Later(min(e.LeaseEnd(i), e.EndInMode(i)), late)
}

// RefusedTries visits the tries of a key that were refused because it was held, though no hold or request of another
// owner can have been in their way. taken is the number of permits of the others. It skips tries after a fault that may
// have changed the servers' data, and locks on several servers, where two requests may both fail.
func RefusedTries(v *bounds.View, k *SharedKey, o given.Options, visit func(span int32, taken int64)) {
	busy := slices.DeleteFunc(slices.Clone(k.Requests), func(i int32) bool { return !v.H.Spans[i].Busy })
	if len(busy) == 0 || o.MayBeDown > 0 {
		return
	}
	e := v.FreeTimes().Extents
	all := possiblyHeld(e, k.Key, true, o.Slack())
	dis := v.Disturbances(o)
	for i, s := range refs.At(v.H.Spans, k.Requests) {
		if s.Outcome == history.Fail {
			all = append(all, NewOccupancy(s, s.Call, v.QueuedUntil(i, dis)))
		}
	}
	sums := NewOccupancySums(all)
	for i, s := range refs.At(v.H.Spans, busy) {
		sum := sums.In(segment.Of(s.Call, s.Return))
		size, _ := v.SizesIn(k.Key, segment.Of(s.Call, s.Return))
		fits := sum.Permits <= size // with its own
		if !k.Semaphore {
			fits = sum.Count == 1 || !s.Write && sum.writers == 0
		}
		if fits && !dis.MayAffect(segment.Of(0, s.Return), excuse.AnyClient, history.AffectsData) {
			visit(i, sum.Permits-int64(s.Permits))
		}
	}
}

// OccupancySums adds up the occupancies that overlap with a segment.
type OccupancySums struct {
	from, until  []time.Duration // sorted
	begun, ended []occupancySum  // of the first n of from and until
}

type occupancySum struct{ Permits, writers, Count int64 }

func NewOccupancySums(all []Occupancy) (s OccupancySums) {
	s.from, s.begun = sumOccupancies(all, func(d Occupancy) time.Duration { return d.From })
	s.until, s.ended = sumOccupancies(all, func(d Occupancy) time.Duration { return d.Until })
	return s
}

func sumOccupancies(all []Occupancy, at func(d Occupancy) time.Duration) (times []time.Duration, sums []occupancySum) {
	slices.SortFunc(all, func(a, b Occupancy) int { return cmp.Compare(at(a), at(b)) })
	sums = make([]occupancySum, 1, len(all)+1)
	for n, d := range all {
		sum := sums[n]
		sum.Permits, sum.Count = sum.Permits+d.permits, sum.Count+1
		if d.writer {
			sum.writers++
		}
		times, sums = append(times, at(d)), append(sums, sum)
	}
	return times, sums
}

// In adds up everything that overlaps with x, or touches it.
func (s *OccupancySums) In(x segment.Segment) occupancySum {
	b := s.begun[sort.Search(len(s.from), func(n int) bool { return s.from[n] > x.Until })]
	e := s.ended[sort.Search(len(s.until), func(n int) bool { return s.until[n] >= x.From })]
	return occupancySum{b.Permits - e.Permits, b.writers - e.writers, b.Count - e.Count}
}

// MayHavePermits are the longest possible times of all permits of a key.
func MayHavePermits(v *bounds.View, key int32, o given.Options) []Occupancy {
	valid := false
	for _, s := range refs.All(v.H.Spans) {
		valid = valid || s.Key == key && s.Valid != 0 && s.Op != history.OpInspect
	}
	all := possiblyHeld(v.FreeTimes().Extents, key, true, o.Slack())
	if !valid {
		for i := range all {
			if holds := v.ByKey[key]; i >= len(holds) || v.Holds[holds[i]].FreeBy == segment.Never { // possible, or not released
				all[i].Until = segment.Never
			}
		}
	}
	for _, s := range refs.All(v.H.Spans) {
		if s.Key != key || s.Outcome != history.Fail || !excuse.IsAcquire(s.Op) {
			continue
		}
		until := segment.Later(s.Return, o.Slack())
		if s.Op == history.OpTry && s.Busy && !s.Undone { // it was refused, and nothing has to be undone
			until = s.Return
		}
		all = append(all, NewOccupancy(s, s.Call, until))
	}
	return all
}
