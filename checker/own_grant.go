package checker

import (
	"slices"
	"sort"

	"github.com/lockchaos/lockchaos/history"
)

// judgeOwnGrants finds the acquires that waited for their own grant. A server had granted such an acquire, because its
// client had something to undo, and its wait ran out although for longer than the slack no other client can have held
// the key: the lock refused the request that was resent after a lost reply. The waiter of an acquire that failed may be
// ahead in the queue until it is removed. On a quorum, votes may be missing.
func (v *view) judgeOwnGrants(o Options, found *findings) {
	if o.MayBeDown > 0 {
		return
	}
	several, waited := v.multiAcquires(), []int32(nil)
	for i, s := range refsAt(v.h.Spans, v.h.TimedOut) {
		least, _ := v.sizesIn(s.Key, segment{s.Call, s.Return})
		fits := v.h.Limit(s.Key) == 0 || int64(s.Permits) <= least
		if s.Undone && !s.Part && several[i] == nil && s.Return-s.Call > o.slack() && fits {
			waited = append(waited, i)
		}
	}
	if len(waited) == 0 {
		return
	}
	others := v.newWaitReasons(o)
	for i, s := range refsAt(v.h.Spans, waited) {
		if p := longestOutside(segment{s.Call, s.Return}, others.blockedTimes(i)); p.until-p.from > o.slack() {
			found.add(finding{rule: ownGrant, x: none, y: i, start: p.from, end: p.until})
		}
	}
}

// waitReasons are the reasons for which an acquire may wait, other than its own grant.
type waitReasons struct {
	*view
	e    *extents
	away []segment
	held map[int32][]segment // by key, computed when needed: when it may be held; disjoint, by time
	left map[int32][]leftWaiter
}

// leftWaiter is the time in which a failed acquire may still be in the queue.
type leftWaiter struct {
	segment
	span int32
}

func (v *view) newWaitReasons(o Options) *waitReasons {
	w := &waitReasons{view: v, e: v.freeTimes().extents, away: v.outages(o).windows,
		held: make(map[int32][]segment), left: make(map[int32][]leftWaiter)}
	dis := v.disturbances(o)
	for n := range v.h.Spans {
		s, i := &v.h.Spans[n], int32(n)
		if s.Outcome == history.Fail && v.mayLinger(i, dis) {
			w.left[s.Key] = append(w.left[s.Key], leftWaiter{segment{s.Return, w.e.dequeued(i)}, i})
		}
	}
	return w
}

// blockedTimes are the times in which an acquire may have had to wait for others or a server, or its client was paused.
func (w *waitReasons) blockedTimes(i int32) []segment {
	s := &w.h.Spans[i]
	wait := segment{s.Call, s.Return}
	all := slices.Clone(within(w.heldAt(s.Key), wait))
	add := func(x segment) {
		if x.from <= wait.until && wait.from <= x.until {
			all = append(all, x)
		}
	}
	for _, x := range w.e.possible[s.Key] {
		if x.last != i || x.cause != afterUnknownAcquire {
			add(x.segment)
		}
	}
	for _, x := range w.left[s.Key] {
		if x.span != i && x.from < s.Return {
			add(x.segment)
		}
	}
	return slices.Concat(within(w.away, wait), all, w.clientPauses()[w.client(i)])
}

// heldAt are the times in which a key may be held.
func (w *waitReasons) heldAt(key int32) []segment {
	held, known := w.held[key]
	if !known {
		for _, i := range w.e.byKey[key] {
			held = append(held, segment{w.e.holds[i].from, w.e.heldUntil(i, 0)})
		}
		held = mergedSegments(held)
		w.held[key] = held
	}
	return held
}

// within returns the segments that overlap s, of disjoint ones in order of time.
func within(all []segment, s segment) []segment {
	first := sort.Search(len(all), func(n int) bool { return all[n].until >= s.from })
	last := sort.Search(len(all), func(n int) bool { return all[n].from > s.until })
	return all[first:max(first, last)]
}
