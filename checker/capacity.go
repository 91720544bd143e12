package checker

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file finds the times at which a shared lock certainly had capacity for a request: a semaphore, enough permits
// that nobody can have held; a readers-writer lock, no writer. free_times.go does the same for locks with one holder.
// Both use the longest possible intervals.
//
// A lock may serve its waiters in any order, so whether a request must be granted depends on the others: the lock may
// reserve permits for a large request that came first, and a waiting writer may keep readers out. Therefore a try must
// be granted only permits that no other request can take, and a waiter only if each of the others would fit as well
// (unless the lock states that small requests pass large ones).

// judgeCapacity looks for requests that were refused, or waited for longer than the slack, although the lock had
// capacity for them.
func (v *view) judgeCapacity(o Options, found *findings) {
	gaveUp := make(map[int32]bool, len(v.h.TimedOut))
	for _, list := range [][]int32{v.h.TimedOut, v.h.Unanswered} {
		for _, i := range list {
			gaveUp[i] = true
		}
	}
	for _, k := range v.sharedKeys() {
		v.refusedTries(&k, o, func(span int32, taken int64) {
			s := &v.h.Spans[span]
			why := "no client can have held it at the time"
			switch size, _ := v.sizesIn(s.Key, segment{s.Call, s.Return}); {
			case k.semaphore:
				why = fmt.Sprintf("others can have had only %d of %d", taken, size)
			case !s.Write:
				why = "no client can have written at the time"
			}
			found.add(finding{rule: tryRefused, x: int32(taken), y: span, start: s.Call, end: s.Return, note: why})
		})
		v.waitedWithCapacity(&k, gaveUp, o, func(span int32, s segment) {
			why := either(k.semaphore, "so many were free", "no client wrote or waited to write")
			found.add(finding{rule: notAdmitted, x: none, y: span, start: s.from, end: s.until, note: why})
		})
	}
}

// occupancy is the share of a lock that a hold or a request occupies, and the longest time for which it may do so.
type occupancy struct {
	segment
	permits int64
	writer  bool
}

func newOccupancy(s *history.Span, from, until time.Duration) occupancy {
	return occupancy{segment{from, until}, int64(s.Permits), s.Write}
}

// sharedKey is a key that several owners may hold at once: a semaphore, or one with readers.
type sharedKey struct {
	key       int32
	semaphore bool
	requests  []int32 // acquires and tries
}

// sharedKeys are the keys that several owners may hold at once, in their order.
func (v *view) sharedKeys() (all []sharedKey) {
	at := make([]int32, len(v.h.Keys)) // by key: 1 + index into all
	share := func(key int32) {
		if limit := v.h.Limit(key); at[key] == 0 && limit >= 0 {
			all = append(all, sharedKey{key: key, semaphore: limit > 0})
			at[key] = int32(len(all))
		}
	}
	for key := range at {
		if v.h.Limit(int32(key)) > 0 {
			share(int32(key))
		}
	}
	for _, s := range refsAt(v.h.Spans, v.rare) {
		if !s.Write && isAcquire(s.Op) {
			share(s.Key)
		}
	}
	if len(all) == 0 {
		return nil
	}
	for i, s := range refs(v.h.Spans) {
		if n := at[s.Key]; n > 0 && isAcquire(s.Op) {
			all[n-1].requests = append(all[n-1].requests, i)
		}
	}
	slices.SortFunc(all, func(a, b sharedKey) int { return cmp.Compare(a.key, b.key) })
	return all
}

// possiblyHeld are the longest possible times of all holds of a key, certain or possible. A hold counts from the
// return of its acquire or, if early, from its invocation. One that was not released counts until late after its lease.
func (e *extents) possiblyHeld(key int32, early bool, late time.Duration) (all []occupancy) {
	for i, h := range refsAt(e.holds, e.byKey[key]) {
		from := h.from
		if early {
			from = h.asked
		}
		all = append(all, newOccupancy(&e.h.Spans[h.span], from, e.heldUntil(i, late)))
	}
	for _, x := range e.possible[key] {
		span := x.last
		if x.cause != afterUnknownAcquire {
			span = e.holds[x.last].span
		}
		all = append(all, newOccupancy(&e.h.Spans[span], x.from, later(x.until, late)))
	}
	return all
}

// heldUntil is the latest possible end of hold i: late after its lease, unless it was certainly released. What its
// owner holds in the other mode does not prolong it.
func (e *extents) heldUntil(i int32, late time.Duration) time.Duration {
	if h := &e.holds[i]; h.freeBy != never && !h.ambiguous {
		return h.freeBy
	}
	return later(min(e.leaseEnd(i), e.endInMode(i)), late)
}

// refusedTries visits the tries of a key that were refused because it was held, though no hold or request of another
// owner can have been in their way. taken is the number of permits of the others. It skips tries after a fault that may
// have changed the servers' data, and locks on several servers, where two requests may both fail.
func (v *view) refusedTries(k *sharedKey, o Options, visit func(span int32, taken int64)) {
	busy := slices.DeleteFunc(slices.Clone(k.requests), func(i int32) bool { return !v.h.Spans[i].Busy })
	if len(busy) == 0 || o.MayBeDown > 0 {
		return
	}
	e := v.freeTimes().extents
	all := e.possiblyHeld(k.key, true, o.slack())
	dis := v.disturbances(o)
	for i, s := range refsAt(v.h.Spans, k.requests) {
		if s.Outcome == history.Fail {
			all = append(all, newOccupancy(s, s.Call, v.queuedUntil(i, dis)))
		}
	}
	sums := newOccupancySums(all)
	for i, s := range refsAt(v.h.Spans, busy) {
		sum := sums.in(segment{s.Call, s.Return})
		size, _ := v.sizesIn(k.key, segment{s.Call, s.Return})
		fits := sum.permits <= size // with its own
		if !k.semaphore {
			fits = sum.count == 1 || !s.Write && sum.writers == 0
		}
		if fits && !dis.mayAffect(segment{0, s.Return}, anyClient, history.AffectsData) {
			visit(i, sum.permits-int64(s.Permits))
		}
	}
}

// occupancySums adds up the occupancies that overlap with a segment.
type occupancySums struct {
	from, until  []time.Duration // sorted
	begun, ended []occupancySum  // of the first n of from and until
}

type occupancySum struct{ permits, writers, count int64 }

func newOccupancySums(all []occupancy) (s occupancySums) {
	s.from, s.begun = sumOccupancies(all, func(d occupancy) time.Duration { return d.from })
	s.until, s.ended = sumOccupancies(all, func(d occupancy) time.Duration { return d.until })
	return s
}

func sumOccupancies(all []occupancy, at func(d occupancy) time.Duration) (times []time.Duration, sums []occupancySum) {
	slices.SortFunc(all, func(a, b occupancy) int { return cmp.Compare(at(a), at(b)) })
	sums = make([]occupancySum, 1, len(all)+1)
	for n, d := range all {
		sum := sums[n]
		sum.permits, sum.count = sum.permits+d.permits, sum.count+1
		if d.writer {
			sum.writers++
		}
		times, sums = append(times, at(d)), append(sums, sum)
	}
	return times, sums
}

// in adds up everything that overlaps with x, or touches it.
func (s *occupancySums) in(x segment) occupancySum {
	b := s.begun[sort.Search(len(s.from), func(n int) bool { return s.from[n] > x.until })]
	e := s.ended[sort.Search(len(s.until), func(n int) bool { return s.until[n] >= x.from })]
	return occupancySum{b.permits - e.permits, b.writers - e.writers, b.count - e.count}
}
