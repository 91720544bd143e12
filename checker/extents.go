package checker

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file finds the longest possible extent of each hold. Safety is judged on the shortest intervals that are
// certain, liveness on the longest that are possible. A hold may last from its grant (or, if its client was paused
// during the acquire, from the pause) to the return of its release or, without a release, to the end of the last lease
// that can have been in force. An acquire of unknown outcome may have held the lock from its invocation to the end of
// its lease.

// extents are the longest possible times of all holds.
type extents struct {
	*view
	possible [][]freeInterval // by key: times in which a hold may exist that is not among the holds of view
	renewed  []time.Duration  // by hold: latest end of a renewed lease; nil if nothing was renewed
	// renewedInMode is renewed without grants in the other mode (see [extents.endInMode]).
	renewedInMode []time.Duration
	regranted     map[ownerKey][]renewal // see [extents.enteredAgain]; nil until needed
	faults        disturbances
	longestLease  time.Duration         // of a lock that renews by itself, as its promises show it; 0: unknown
	crashed       map[int]time.Duration // see [view.crashes]

	longestRequested func() map[int]time.Duration // by client, the longest lease that it requested
	renewedItself    func() map[ownerKey]bool     // see [view.findRenewedItself]
}

func newExtents(v *view) *extents {
	e := &extents{view: v, possible: make([][]freeInterval, len(v.byKey)),
		faults: disturbances{times: v.faultTimes()}, crashed: v.crashes()}
	e.longestRequested = sync.OnceValue(e.findRequested)
	e.renewedItself = sync.OnceValue(v.findRenewedItself)
	renewals := len(v.regrants) > 0
	for i, s := range refs(v.h.Spans) {
		e.addHandedOver(i)
		renewals = renewals || s.Op == history.OpRenew
		if s.Lease == 0 && s.Valid != 0 && s.Op != history.OpRenew {
			e.longestLease = max(e.longestLease, s.Valid-s.Call)
		}
	}
	for i := range v.h.Notices {
		renewals = renewals || v.h.Notices[i].F == history.Renewed
	}
	if renewals {
		e.addRenewals()
	}
	pauses := v.clientTimes(func(f *faultTime) bool { return f.affects != history.AffectsMessages })
	for i, s := range refs(v.h.Spans) {
		switch {
		case v.mayHold(s):
			e.addUnknownAcquire(i)
		case s.Undone:
			e.add(s.Key, segment{s.Call, s.Return}, i, afterUnknownAcquire)
		case s.Outcome == history.Fail && isAcquire(s.Op):
			e.addPausedAcquire(i, pauses[v.client(i)])
		}
	}
	e.addPausedGrants()
	for _, x := range e.possible {
		slices.SortFunc(x, func(a, b freeInterval) int { return cmp.Compare(a.from, b.from) })
	}
	return e
}

// leaseEnd is the time by which hold i has certainly ended if it was not released.
func (e *extents) leaseEnd(i int32) time.Duration {
	h := &e.holds[i]
	end := never
	if lease := e.h.Spans[h.span].Lease; lease > 0 {
		end = later(h.from, lease)
	} else if e.longestLease > 0 && h.ending == endLost {
		end = later(e.faults.deliveredBy(max(h.from, h.until), e.client(h.span)), e.longestLease) // a renewal may arrive late
	}
	if e.renewed != nil {
		end = max(end, e.renewed[i], e.unanswered(i))
	}
	return end
}

// unanswered is the end of the lease of a lost hold that the lock renewed by itself, if a fault may have hidden the
// replies to its last renewals: these were executed, as late as the loss was reported. 0: it is no such hold.
func (e *extents) unanswered(i int32) time.Duration {
	h := &e.holds[i]
	lease := e.h.Spans[h.span].Lease
	if lease == 0 || h.ending != endLost || !e.renewedItself()[ownerKey{h.owner, h.key}] ||
		!e.faults.mayAffect(segment{h.until - lease, h.until}, e.client(h.span), history.AffectsTraffic) {
		return 0
	}
	return later(e.faults.deliveredBy(max(h.from, h.until), e.client(h.span)), lease)
}

// findRenewedItself finds the owners whose holds a lock has renewed by itself.
func (v *view) findRenewedItself() map[ownerKey]bool {
	renewed := make(map[ownerKey]bool)
	for _, n := range refs(v.h.Notices) {
		if n.F == history.Renewed {
			renewed[ownerKey{n.Owner, n.Key}] = true
		}
	}
	return renewed
}

// freeAt is the latest possible end of hold i: its release or, if its outcome is unknown or there was none, the end of
// its lease.
func (e *extents) freeAt(i int32) time.Duration {
	if by := e.holds[i].freeBy; by != never {
		return by
	}
	return e.leaseEnd(i)
}

// mayHold reports whether acquire s may have been granted without a hold in view: its outcome is unknown, or the holds
// of its owner are.
func (v *view) mayHold(s *history.Span) bool {
	return isAcquire(s.Op) && (s.Outcome == history.Info || s.Outcome == history.OK && v.ownerOrder[s.Owner] == ordUnknown)
}

// add adds a time in which a hold may exist.
func (e *extents) add(key int32, s segment, last int32, why cause) {
	if s.from < s.until {
		e.possible[key] = append(e.possible[key], freeInterval{segment: s, key: key, last: last, cause: why})
	}
}

// addUnknownAcquire adds the possible hold of an acquire of unknown outcome, or of an owner whose holds are unknown.
func (e *extents) addUnknownAcquire(i int32) {
	s := &e.h.Spans[i]
	end, lease := e.latestEffect(i), s.Lease
	if s.Outcome == history.OK {
		end = never
	}
	k, dead := e.crashed[e.client(i)]
	if dead = dead && k >= s.Call; dead {
		end, lease = min(end, e.faults.deliveredBy(k, e.client(i))), cmp.Or(lease, e.longestLease)
	}
	if lease == 0 || !dead && e.renewedItself()[ownerKey{s.Owner, s.Key}] { // its client may renew a possible hold
		end = never
	}
	e.add(s.Key, segment{s.Call, max(later(end, lease), e.enteredAgain(s))}, i, afterUnknownAcquire)
}

// addPausedAcquire adds the times in which an acquire may have held a key, or a part of it at some of several servers,
// before it failed: from each pause of its client to the end of the pause or of the lease. Samples that name owners
// show whether it did.
func (e *extents) addPausedAcquire(i int32, pauses []segment) {
	s, seen := &e.h.Spans[i], e.samples()
	for _, p := range pauses {
		named := !e.namesOwners(s.Key) || seen.firstNamed(ownerKey{s.Owner, s.Key}, segment{s.Call, s.Return}) != nil
		if x := (segment{max(s.Call, p.from), min(s.Return, p.until)}); x.from < x.until && named {
			end := later(e.faults.deliveredBy(x.from, e.client(i)), cmp.Or(s.Lease, never))
			e.add(s.Key, segment{x.from, min(x.until, end)}, i, afterUnknownAcquire)
		}
	}
}

// addHandedOver adds the time in which a lock with a queue may keep a grant that it handed over to the waiter of
// acquire i, which does not know of it: such a grant lasts as long as the waiter's place in the queue. Nothing is
// added if samples that name owners show no such grant or, without them, if it is unknown how long the lock keeps a
// waiter. A lock that does not state that it is fair has a queue if samples show a grant to an acquire that had ended.
func (e *extents) addHandedOver(i int32) {
	s := &e.h.Spans[i]
	if s.Op != history.OpAcquire || s.Outcome != history.Info && !(e.fair && e.mayLinger(i, e.faults)) {
		return
	}
	until, seen := e.dequeued(i), e.samples()
	if e.namesOwners(s.Key) {
		x := seen.firstNamed(ownerKey{s.Owner, s.Key}, segment{s.Call, until})
		if x == nil || !e.fair && !seen.sampledBetween(x.Node, segment{e.lastRequest(i), x.Time}) {
			return
		}
	} else if !e.fair || e.poll == 0 && seen == nil {
		return
	}
	e.add(s.Key, segment{s.Call, until}, i, afterUnknownAcquire)
}

// namesOwners reports whether there are samples that name the owners of a key, which those of permits do not.
func (e *extents) namesOwners(key int32) bool {
	return e.samples() != nil && e.h.Limit(key) == 0 && !e.samples().permits[key]
}

// addPausedGrants adds, for a client that was paused during an acquire, the time from the pause to the grant: it may
// already have had the lock, and only the reply was late.
func (e *extents) addPausedGrants() {
	for i, h := range refs(e.holds) {
		for _, p := range e.clientPauses()[e.client(h.span)] {
			if begin := max(h.asked, p.from); begin < p.until {
				e.add(h.key, segment{begin, h.from}, i, afterRelease)
			}
		}
	}
}

// firstUnknown is, by key, the invocation of the first acquire that may have been granted without a hold in view;
// never: there is none.
func (v *view) firstUnknown() []time.Duration {
	first := slices.Repeat([]time.Duration{never}, len(v.byKey))
	for _, s := range refs(v.h.Spans) {
		if v.mayHold(s) || s.Undone {
			first[s.Key] = min(first[s.Key], s.Call)
		}
	}
	return first
}

// latestEffect is the latest time at which an operation can have taken effect: its completion or, if its outcome is
// unknown, the arrival of a request that was sent at its completion; never if it has no completion.
func (e *extents) latestEffect(i int32) time.Duration {
	s := &e.h.Spans[i]
	if s.Outcome != history.Info || s.Ended < 0 {
		return s.Return
	}
	t, completed := e.completed()[i]
	if !completed {
		return never
	}
	return e.faults.deliveredBy(t, e.client(i))
}

// findCompleted finds the time of the completion of each operation of unknown outcome.
func (v *view) findCompleted() map[int32]time.Duration {
	completed := make(map[int32]time.Duration, len(v.h.Unknown))
	for _, u := range v.h.Unknown {
		completed[u.Span] = u.Time
	}
	return completed
}
