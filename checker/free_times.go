package checker

import (
	"cmp"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file finds the times in which a key was certainly free; recovery, wake-up and leak are judged on these. Safety
// uses the shortest intervals that are certain, liveness the longest that are possible. A hold may have lasted from
// its grant (or, if its client was paused during the acquire, from the pause) to the return of its release or,
// without one, to the end of the last lease that can have been in force. An acquire of unknown outcome may have held
// the lock from its invocation to the end of its lease.

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
	last  int32 // what ended last: a hold or, after an unknown acquire, a span; -1 if it was never held
	cause cause
}

// wait is an acquire that was in flight in a free interval.
type wait struct{ gap, span int32 }

// freeTimes is what is known of the times in which keys were free.
type freeTimes struct {
	gaps    []freeInterval // longer than the slack, by key and time
	free    []freeInterval // by key: from when on no client can hold it; until the end of the run
	extents *extents
	waits   []wait // acquires longer than the slack that overlap a gap, by gap

	nothingHeld func() []segment // see [freeTimes.timesNothingHeld]
}

// findFreeTimes finds the gaps longer than slack.
func (v *view) findFreeTimes(slack time.Duration) *freeTimes {
	d := &freeTimes{free: make([]freeInterval, len(v.byKey)), extents: newExtents(v)}
	d.nothingHeld = sync.OnceValue(func() []segment { return d.timesNothingHeld(v, slack) })
	for key := range v.byKey {
		d.addKey(d.extents, int32(key), slack)
	}
	d.matchWaits(v, slack)
	return d
}

// addKey goes through everything that may have held a key, in the order of its beginning.
func (d *freeTimes) addKey(e *extents, key int32, slack time.Duration) {
	holds, extra := e.byKey[key], e.possible[key]
	now := freeInterval{segment: segment{0, 0}, key: key, last: -1}
	next := func(from, until time.Duration, last int32, why cause) {
		if from-now.from > slack {
			now.until = from
			d.gaps = append(d.gaps, now)
		}
		if until >= now.from {
			now = freeInterval{segment: segment{until, never}, key: key, last: last, cause: why}
		}
	}
	for i, h := range refsAt(e.holds, holds) {
		for len(extra) > 0 && extra[0].from <= h.from {
			next(extra[0].from, extra[0].until, extra[0].last, extra[0].cause)
			extra = extra[1:]
		}
		if h.freeBy < never {
			next(h.from, h.freeBy, i, afterRelease)
		} else {
			next(h.from, e.leaseEnd(i), i, afterExpiry)
		}
	}
	for _, x := range extra {
		next(x.from, x.until, x.last, x.cause)
	}
	if now.until = e.h.End; now.until-now.from > slack {
		d.gaps = append(d.gaps, now)
	}
	d.free[key] = now
}

// matchWaits finds the acquires that waited in the gaps. One of unknown outcome does not count: its client may have
// exited.
func (d *freeTimes) matchWaits(v *view, slack time.Duration) {
	several := v.multiAcquires()
	if len(d.gaps) == 0 && several == nil {
		return
	}
	first := make([]int, len(v.byKey)+1) // index of the first gap of each key
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

// longWaits visits the operations that were granted after more than slack, and the acquires whose wait ran out.
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

// extents is the longest time that each hold can have lasted.
type extents struct {
	*view
	possible [][]freeInterval // by key: acquires of unknown outcome, and grants to paused clients
	renewed  []time.Duration  // by hold: latest end of a renewed lease; nil if nothing was renewed
	// renewedInMode is renewed without grants in the other mode (see [extents.endInMode]).
	renewedInMode []time.Duration
	regranted     map[ownerKey][]renewal // see [extents.enteredAgain]; nil until needed
	faults        disturbances
	longestLease  time.Duration         // of a lock that renews by itself, as its promises show it; 0: unknown
	crashed       map[int]time.Duration // see [view.crashes]

	longestRequested func() map[int]time.Duration // by client, the longest lease that it requested
}

func newExtents(v *view) *extents {
	e := &extents{view: v, possible: make([][]freeInterval, len(v.byKey)),
		faults: disturbances{times: v.faultTimes()}, crashed: v.crashes()}
	e.longestRequested = sync.OnceValue(e.findRequested)
	unknown, renewals, undone := false, len(v.regrants) > 0, false
	for _, s := range refs(v.h.Spans) {
		unknown, undone = unknown || v.mayHold(s), undone || s.Undone
		renewals = renewals || s.Op == history.OpRenew
		if s.Lease == 0 && s.Valid != 0 && s.Op != history.OpRenew {
			e.longestLease = max(e.longestLease, s.Valid-s.Call)
		}
	}
	for i := range v.h.Notices {
		renewals = renewals || v.h.Notices[i].F == history.Renewed
	}
	if renewals {
		e.renewals()
	}
	if unknown {
		e.unknowns()
	}
	if undone {
		e.undoneGrants()
	}
	e.pausedGrants()
	for _, x := range e.possible {
		slices.SortFunc(x, func(a, b freeInterval) int { return cmp.Compare(a.from, b.from) })
	}
	return e
}

// leaseEnd is when a hold that was not released has certainly ended.
func (e *extents) leaseEnd(i int32) time.Duration {
	h := &e.holds[i]
	end := never
	if lease := e.h.Spans[h.span].Lease; lease > 0 {
		end = later(h.from, lease)
	} else if e.longestLease > 0 && h.ending == endLost {
		end = later(e.faults.delivery(max(h.from, h.until), e.client(h.span)), e.longestLease) // a renewal may arrive late
	}
	if e.renewed != nil {
		end = max(end, e.renewed[i])
	}
	return end
}

// freeAt is when hold i had ended at the latest: when its key was free or, if that is not known, when its lease ended.
func (e *extents) freeAt(i int32) time.Duration {
	if by := e.holds[i].freeBy; by != never {
		return by
	}
	return e.leaseEnd(i)
}

// mayHold reports whether s may have been granted without a known hold: its outcome is unknown, or the
// holds of its owner are.
func (v *view) mayHold(s *history.Span) bool {
	if !isAcquire(s.Op) {
		return false
	}
	return s.Outcome == history.Info || (s.Outcome == history.OK && v.ownerOrder[s.Owner] == ordUnknown)
}

// unknowns adds the acquires of unknown outcome.
func (e *extents) unknowns() {
	for i, s := range refs(e.h.Spans) {
		if !e.mayHold(s) {
			continue
		}
		end, lease := e.latestEffect(i), s.Lease
		if s.Outcome == history.OK {
			end = never
		}
		if k, ok := e.crashed[s.Process.Client(e.h.Clients)]; ok && k >= s.Call {
			end, lease = min(end, e.faults.delivery(k, e.client(i))), cmp.Or(lease, e.longestLease)
		}
		if lease == 0 { // its client is alive, and may renew what it may hold
			end = never
		}
		until := max(later(end, lease), e.enteredAgain(s))
		if e.fair && s.Op == history.OpAcquire && s.Outcome == history.Info {
			until = max(until, e.handedOver(i))
		}
		x := freeInterval{key: s.Key, last: i, cause: afterUnknownAcquire, segment: segment{s.Call, until}}
		e.possible[s.Key] = append(e.possible[s.Key], x)
	}
}

// handedOver is the instant until which a fair lock may keep a grant that it handed over to the waiter of an acquire:
// such a grant lasts as long as the waiter's place in the queue. Zero if samples show no such grant or, without
// samples, if it is unknown how long the lock keeps a waiter.
func (e *extents) handedOver(i int32) time.Duration {
	s, until := &e.h.Spans[i], e.dequeued(i)
	seen := e.samples()
	if seen == nil && e.poll == 0 ||
		seen != nil && seen.firstNamed(ownerKey{s.Owner, s.Key}, segment{s.Call, until}) == nil {
		return 0
	}
	return until
}

// pausedGrants adds the time in which a client may already have been granted a lock but was paused before the reply.
func (e *extents) pausedGrants() {
	pauses := e.clientPauses()
	if len(pauses) == 0 {
		return
	}
	for i, h := range refs(e.holds) {
		for _, p := range pauses[e.client(h.span)] {
			if begin := max(h.asked, p.from); begin < min(h.from, p.until) {
				x := freeInterval{segment: segment{begin, h.from}, key: h.key, last: i, cause: afterRelease}
				e.possible[h.key] = append(e.possible[h.key], x)
			}
		}
	}
}

// firstUnknown is, by key, when the first acquire was invoked that may have been granted without a known hold; never
// if there is none.
func (v *view) firstUnknown() []time.Duration {
	first := slices.Repeat([]time.Duration{never}, len(v.byKey))
	for _, s := range refs(v.h.Spans) {
		if v.mayHold(s) || s.Undone {
			first[s.Key] = min(first[s.Key], s.Call)
		}
	}
	return first
}

// latestEffect is the latest time at which an operation can have taken effect: when its completion was recorded, or, if
// its outcome is unknown, when a request that was sent by then had arrived; never if there is no completion.
func (e *extents) latestEffect(i int32) time.Duration {
	s := &e.h.Spans[i]
	if s.Outcome != history.Info || s.Ended < 0 {
		return s.Return
	}
	t, completed := e.completed()[i]
	if !completed {
		return never
	}
	return e.faults.delivery(t, e.client(i))
}

// findCompleted finds, by operation of unknown outcome, when its completion was recorded.
func (v *view) findCompleted() map[int32]time.Duration {
	completed := make(map[int32]time.Duration, len(v.h.Unknown))
	for _, u := range v.h.Unknown {
		completed[u.Span] = u.Time
	}
	return completed
}

// leaseOver is when the key that a finding is about became free.
func (v *view) leaseOver(f finding) time.Duration {
	for _, g := range v.freeTimes().gaps {
		if g.last == f.x && g.cause == afterExpiry && g.from <= f.start && f.end <= g.until {
			return g.from
		}
	}
	return f.start
}

// spanOf is the operation behind what was last before a key became free.
func (v *view) spanOf(key, last int32) int32 {
	if v.freeTimes().free[key].cause == afterUnknownAcquire {
		return last
	}
	return v.holds[last].span
}
