package bounds

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// renewal is a possible new start of the lease of an owner's holds at a key.
type renewal struct {
	Owner, Key int32
	At, Lease  time.Duration // lease 0: the same as before
	within     grantMode     // it is a grant inside a hold
}

// grantMode is the mode of a grant inside a hold.
type grantMode uint8

const (
	anyMode grantMode = iota // it is none, but a renewal
	toRead
	toWrite
	grantModes
)

func grantModeOf(reader bool) grantMode {
	if reader {
		return toRead
	}
	return toWrite
}

// addRenewals extends the holds that were or may have been renewed, by every renewal after they began. Holds and
// renewals are sorted and gone through backwards, so that the latest end by any later renewal is known at each hold.
func (e *Extents) addRenewals() {
	list := e.RenewalList()
	ofOwner := func(owner, key int32, at time.Duration, r renewal) int {
		return cmp.Or(cmp.Compare(owner, r.Owner), cmp.Compare(key, r.Key), cmp.Compare(at, r.At))
	}
	slices.SortFunc(list, func(a, b renewal) int { return ofOwner(a.Owner, a.Key, a.At, b) })
	e.Renewed, e.renewedInMode = make([]time.Duration, len(e.Holds)), make([]time.Duration, len(e.Holds))
	kept := make([]int32, 0, len(e.Holds)) // renewals of released holds do not matter
	for i := range e.Holds {
		if e.Holds[i].Ending != ledger.EndReleased {
			kept = append(kept, int32(i))
		}
	}
	slices.SortFunc(kept, func(i, j int32) int {
		a, b := &e.Holds[i], &e.Holds[j]
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Key, b.Key), cmp.Compare(a.From, b.From))
	})
	n := len(list)
	var last renewal // whose owner and key the next two are about
	var ends [grantModes]time.Duration
	var same time.Duration
	for _, i := range slices.Backward(kept) {
		h := &e.Holds[i]
		for n > 0 && ofOwner(h.Owner, h.Key, h.From, list[n-1]) <= 0 {
			r := list[n-1]
			if n--; r.Owner != last.Owner || r.Key != last.Key || n == len(list)-1 {
				last, ends, same = r, [grantModes]time.Duration{}, -1
			}
			if r.Lease > 0 {
				ends[r.within] = max(ends[r.within], segment.Later(r.At, r.Lease))
			} else {
				same = max(same, r.At)
			}
		}
		if n == len(list) || last.Owner != h.Owner || last.Key != h.Key {
			continue
		}
		end := max(ends[anyMode], ends[grantModeOf(h.Reader)])
		if same >= 0 {
			end = max(end, segment.Later(same, cmp.Or(e.H.Spans[h.Span].Lease, e.LongestLease)))
		}
		e.renewedInMode[i] = end
		e.Renewed[i] = max(e.Renewed[i], end, ends[grantModeOf(!h.Reader)])
	}
}

// EndInMode is when a hold with a lease has ended of which the lock reported that it was lost, and in which mode: it
// knows the leases of the two modes apart, so that a grant in the other mode extends none. never: it did not report
// that.
func (e *Extents) EndInMode(i int32) time.Duration {
	h := &e.Holds[i]
	lease, n := e.H.Spans[h.Span].Lease, e.NoticeAt(h.EndEvent)
	if lease == 0 || h.Ending != ledger.EndLost || n == nil || !n.Moded {
		return segment.Never
	}
	end := segment.Later(h.From, lease)
	if e.renewedInMode != nil {
		end = max(end, e.renewedInMode[i])
	}
	return end
}

// RenewalList is every renewal that succeeded or may have, and every acquire inside a hold: its lease may be the longer
// one, and lasts after its release.
func (e *Extents) RenewalList() (list []renewal) {
	for i, s := range refs.At(e.H.Spans, e.Rare) {
		if s.Op == history.OpRenew && s.Outcome != history.Fail {
			list = append(list, renewal{s.Owner, s.Key, e.latestEffect(i), s.Lease, anyMode})
		}
	}
	for _, s := range refs.At(e.H.Spans, e.Regrants) {
		list = append(list, renewal{
			s.Owner, s.Key, s.Return, cmp.Or(s.Lease, e.LongestLease), grantModeOf(!s.Write)})
	}
	for _, n := range refs.All(e.H.Notices) {
		if n.F == history.Renewed {
			list = append(list, renewal{n.Owner, n.Key, n.Time, 0, anyMode})
		}
	}
	return list
}

// enteredAgain is when the leases of the hold in which s was invoked have ended: if s, of unknown outcome, entered it
// once more, the releases that its owner knows of leave that level, with the longest of them. 0: s was not invoked in
// a hold.
func (e *Extents) enteredAgain(s *history.Span) time.Duration {
	i, is := e.LastHold(s.Owner, s.Key, s.Call)
	if !is || e.Holds[i].Until < s.Call || e.H.Limit(s.Key) != 0 {
		return 0
	}
	if e.regranted == nil {
		e.regranted = make(map[ledger.OwnerKey][]renewal)
		for _, r := range e.RenewalList() {
			at := ledger.OwnerKey{Owner: r.Owner, Key: r.Key}
			e.regranted[at] = append(e.regranted[at], r)
		}
	}
	end := e.LeaseEnd(i)
	for _, r := range e.regranted[ledger.Of(s)] {
		if r.At >= e.Holds[i].From {
			end = max(end, segment.Later(r.At, r.Lease))
		}
	}
	return end
}
