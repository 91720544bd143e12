package bounds

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// This file finds the longest possible extent of each hold. Safety is judged on the shortest intervals that are
// certain, liveness on the longest that are possible. A hold may last from its grant (or, if its client was paused
// during the acquire, from the pause) to the return of its release or, without a release, to the end of the last lease
// that can have been in force. An acquire of unknown outcome may have held the lock from its invocation to the end of
// its lease.

// Extents are the longest possible times of all holds.
type Extents struct {
	*View
	Possible [][]freeInterval // by key: times in which a hold may exist that is not among the holds of view
	Renewed  []time.Duration  // by hold: latest end of a renewed lease; nil if nothing was renewed
	// renewedInMode is renewed without grants in the other mode (see [Extents.EndInMode]).
	renewedInMode []time.Duration
	regranted     map[ledger.OwnerKey][]renewal // see [Extents.enteredAgain]; nil until needed
	faults        excuse.Disturbances
	LongestLease  time.Duration         // of a lock that renews by itself, as its promises show it; 0: unknown
	Crashed       map[int]time.Duration // see [View.Crashes]

	longestRequested func() map[int]time.Duration    // by client, the longest lease that it requested
	renewedItself    func() map[ledger.OwnerKey]bool // see [View.findRenewedItself]
}

func NewExtents(v *View) *Extents {
	e := &Extents{View: v, Possible: make([][]freeInterval, len(v.ByKey)),
		faults: excuse.Disturbances{Times: v.FaultTimes()}, Crashed: v.Crashes()}
	e.longestRequested = sync.OnceValue(e.findRequested)
	e.renewedItself = sync.OnceValue(v.findRenewedItself)
	renewals := len(v.Regrants) > 0
	for i, s := range refs.All(v.H.Spans) {
		e.addHandedOver(i)
		renewals = renewals || s.Op == history.OpRenew
		if s.Lease == 0 && s.Valid != 0 && s.Op != history.OpRenew {
			e.LongestLease = max(e.LongestLease, s.Valid-s.Call)
		}
	}
	for i := range v.H.Notices {
		renewals = renewals || v.H.Notices[i].F == history.Renewed
	}
	if renewals {
		e.addRenewals()
	}
	pauses := v.ClientTimes(func(f *excuse.FaultTime) bool { return f.Affects != history.AffectsMessages })
	for i, s := range refs.All(v.H.Spans) {
		switch {
		case v.mayHold(s):
			e.addUnknownAcquire(i)
		case s.Undone:
			e.add(s.Key, segment.Of(s.Call, s.Return), i, AfterUnknownAcquire)
		case s.Outcome == history.Fail && excuse.IsAcquire(s.Op):
			e.addPausedAcquire(i, pauses[v.Client(i)])
		}
	}
	e.addPausedGrants()
	for _, x := range e.Possible {
		slices.SortFunc(x, func(a, b freeInterval) int { return cmp.Compare(a.From, b.From) })
	}
	return e
}

// LeaseEnd is the time by which hold i has certainly ended if it was not released.
func (e *Extents) LeaseEnd(i int32) time.Duration {
	h := &e.Holds[i]
	end := segment.Never
	if lease := e.H.Spans[h.Span].Lease; lease > 0 {
		end = segment.Later(h.From, lease)
	} else if e.LongestLease > 0 && h.Ending == ledger.EndLost {
		// a renewal may arrive late
		end = segment.Later(e.faults.DeliveredBy(max(h.From, h.Until), e.Client(h.Span)), e.LongestLease)
	}
	if e.Renewed != nil {
		end = max(end, e.Renewed[i], e.unanswered(i))
	}
	return end
}

// unanswered is the end of the lease of a lost hold that the lock renewed by itself, if a fault may have hidden the
// replies to its last renewals: these were executed, as late as the loss was reported. 0: it is no such hold.
func (e *Extents) unanswered(i int32) time.Duration {
	h := &e.Holds[i]
	lease := e.H.Spans[h.Span].Lease
	if lease == 0 || h.Ending != ledger.EndLost || !e.renewedItself()[h.At()] ||
		!e.faults.MayAffect(segment.Of(h.Until-lease, h.Until), e.Client(h.Span), history.AffectsTraffic) {
		return 0
	}
	return segment.Later(e.faults.DeliveredBy(max(h.From, h.Until), e.Client(h.Span)), lease)
}

// findRenewedItself finds the owners whose holds a lock has renewed by itself.
func (v *View) findRenewedItself() map[ledger.OwnerKey]bool {
	renewed := make(map[ledger.OwnerKey]bool)
	for _, n := range refs.All(v.H.Notices) {
		if n.F == history.Renewed {
			renewed[ledger.OfNotice(n)] = true
		}
	}
	return renewed
}

// FreeAt is the latest possible end of hold i: its release or, if its outcome is unknown or there was none, the end of
// its lease.
func (e *Extents) FreeAt(i int32) time.Duration {
	if by := e.Holds[i].FreeBy; by != segment.Never {
		return by
	}
	return e.LeaseEnd(i)
}

// mayHold reports whether acquire s may have been granted without a hold in view: its outcome is unknown, or the holds
// of its owner are.
func (v *View) mayHold(s *history.Span) bool {
	return excuse.IsAcquire(s.Op) && (s.Outcome == history.Info || s.Outcome == history.OK &&
		v.OwnerOrder[s.Owner] == ledger.OrdUnknown)
}

// add adds a time in which a hold may exist.
func (e *Extents) add(key int32, s segment.Segment, last int32, why Cause) {
	if s.From < s.Until {
		e.Possible[key] = append(e.Possible[key], freeInterval{Segment: s, Key: key, Last: last, Cause: why})
	}
}

// addUnknownAcquire adds the possible hold of an acquire of unknown outcome, or of an owner whose holds are unknown.
func (e *Extents) addUnknownAcquire(i int32) {
	s := &e.H.Spans[i]
	end, lease := e.latestEffect(i), s.Lease
	if s.Outcome == history.OK {
		end = segment.Never
	}
	k, dead := e.Crashed[e.Client(i)]
	if dead = dead && k >= s.Call; dead {
		end, lease = min(end, e.faults.DeliveredBy(k, e.Client(i))), cmp.Or(lease, e.LongestLease)
	}
	// its client may renew a possible hold
	if lease == 0 || !dead && e.renewedItself()[ledger.Of(s)] {
		end = segment.Never
	}
	e.add(s.Key, segment.Of(s.Call, max(segment.Later(end, lease), e.enteredAgain(s))), i, AfterUnknownAcquire)
}

// addPausedAcquire adds the times in which an acquire may have held a key, or a part of it at some of several servers,
// before it failed: from each pause of its client to the end of the pause or of the lease. Samples that name owners
// show whether it did.
func (e *Extents) addPausedAcquire(i int32, pauses []segment.Segment) {
	s, seen := &e.H.Spans[i], e.Samples()
	for _, p := range pauses {
		named := !e.namesOwners(s.Key) || seen.FirstNamed(ledger.Of(s),
			segment.Of(s.Call, s.Return)) != nil
		if x := (segment.Of(max(s.Call, p.From), min(s.Return, p.Until))); x.From < x.Until && named {
			end := segment.Later(e.faults.DeliveredBy(x.From, e.Client(i)), cmp.Or(s.Lease, segment.Never))
			e.add(s.Key, segment.Of(x.From, min(x.Until, end)), i, AfterUnknownAcquire)
		}
	}
}

// addHandedOver adds the time in which a lock with a queue may keep a grant that it handed over to the waiter of
// acquire i, which does not know of it: such a grant lasts as long as the waiter's place in the queue. Nothing is
// added if samples that name owners show no such grant or, without them, if it is unknown how long the lock keeps a
// waiter. A lock that does not state that it is fair has a queue if samples show a grant to an acquire that had ended.
func (e *Extents) addHandedOver(i int32) {
	s := &e.H.Spans[i]
	if s.Op != history.OpAcquire || s.Outcome != history.Info && !(e.Fair && e.MayLinger(i, e.faults)) {
		return
	}
	until, seen := e.Dequeued(i), e.Samples()
	if e.namesOwners(s.Key) {
		x := seen.FirstNamed(ledger.Of(s), segment.Of(s.Call, until))
		if x == nil || !e.Fair && !seen.SampledBetween(x.Node, segment.Of(e.lastRequest(i), x.Time)) {
			return
		}
	} else if !e.Fair || e.Poll == 0 && seen == nil {
		return
	}
	e.add(s.Key, segment.Of(s.Call, until), i, AfterUnknownAcquire)
}

// namesOwners reports whether there are samples that name the owners of a key, which those of permits do not.
func (e *Extents) namesOwners(key int32) bool {
	return e.Samples() != nil && e.H.Limit(key) == 0 && !e.Samples().Permits[key]
}

// addPausedGrants adds, for a client that was paused during an acquire, the time from the pause to the grant: it may
// already have had the lock, and only the reply was late.
func (e *Extents) addPausedGrants() {
	for i, h := range refs.All(e.Holds) {
		for _, p := range e.ClientPauses()[e.Client(h.Span)] {
			if begin := max(h.Asked, p.From); begin < p.Until {
				e.add(h.Key, segment.Of(begin, h.From), i, AfterRelease)
			}
		}
	}
}

// FirstUnknown is, by key, the invocation of the first acquire that may have been granted without a hold in view;
// never: there is none.
func (v *View) FirstUnknown() []time.Duration {
	first := slices.Repeat([]time.Duration{segment.Never}, len(v.ByKey))
	for _, s := range refs.All(v.H.Spans) {
		if v.mayHold(s) || s.Undone {
			first[s.Key] = min(first[s.Key], s.Call)
		}
	}
	return first
}

// latestEffect is the latest time at which an operation can have taken effect: its completion or, if its outcome is
// unknown, the arrival of a request that was sent at its completion; never if it has no completion.
func (e *Extents) latestEffect(i int32) time.Duration {
	s := &e.H.Spans[i]
	if s.Outcome != history.Info || s.Ended < 0 {
		return s.Return
	}
	t, completed := e.Completed()[i]
	if !completed {
		return segment.Never
	}
	return e.faults.DeliveredBy(t, e.Client(i))
}

// ExtentSums are the bounds of the holds of a key, for each number n of holds in the order of their grants.
type ExtentSums struct {
	LastEnd  []time.Duration // until when the first n holds can have lasted
	NextCall []time.Duration // from when on the holds after the first n can have begun
}

func (v *View) ExtentSumsOf(holds []int32) ExtentSums {
	r := ExtentSums{make([]time.Duration, len(holds)+1), make([]time.Duration, len(holds)+1)}
	r.LastEnd[0], r.NextCall[len(holds)] = -1, segment.Never
	for n, i := range holds {
		r.LastEnd[n+1] = max(r.LastEnd[n], v.Holds[i].FreeBy)
		if v.Holds[i].Extra().MaybeLeft {
			r.LastEnd[n+1] = segment.Never
		}
	}
	for n := len(holds) - 1; n >= 0; n-- {
		r.NextCall[n] = min(r.NextCall[n+1], v.Holds[holds[n]].Asked)
	}
	return r
}
