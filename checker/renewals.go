package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// renewal is a possible new start of the lease of an owner's holds at a key.
type renewal struct {
	owner, key int32
	at, lease  time.Duration // lease 0: the same as before
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
func (e *extents) addRenewals() {
	list := e.renewalList()
	ofOwner := func(owner, key int32, at time.Duration, r renewal) int {
		return cmp.Or(cmp.Compare(owner, r.owner), cmp.Compare(key, r.key), cmp.Compare(at, r.at))
	}
	slices.SortFunc(list, func(a, b renewal) int { return ofOwner(a.owner, a.key, a.at, b) })
	e.renewed, e.renewedInMode = make([]time.Duration, len(e.holds)), make([]time.Duration, len(e.holds))
	kept := make([]int32, 0, len(e.holds)) // renewals of released holds do not matter
	for i := range e.holds {
		if e.holds[i].ending != endReleased {
			kept = append(kept, int32(i))
		}
	}
	slices.SortFunc(kept, func(i, j int32) int {
		a, b := &e.holds[i], &e.holds[j]
		return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.key, b.key), cmp.Compare(a.from, b.from))
	})
	n := len(list)
	var last renewal // whose owner and key the next two are about
	var ends [grantModes]time.Duration
	var same time.Duration
	for _, i := range slices.Backward(kept) {
		h := &e.holds[i]
		for n > 0 && ofOwner(h.owner, h.key, h.from, list[n-1]) <= 0 {
			r := list[n-1]
			if n--; r.owner != last.owner || r.key != last.key || n == len(list)-1 {
				last, ends, same = r, [grantModes]time.Duration{}, -1
			}
			if r.lease > 0 {
				ends[r.within] = max(ends[r.within], later(r.at, r.lease))
			} else {
				same = max(same, r.at)
			}
		}
		if n == len(list) || last.owner != h.owner || last.key != h.key {
			continue
		}
		end := max(ends[anyMode], ends[grantModeOf(h.reader)])
		if same >= 0 {
			end = max(end, later(same, cmp.Or(e.h.Spans[h.span].Lease, e.longestLease)))
		}
		e.renewedInMode[i] = end
		e.renewed[i] = max(e.renewed[i], end, ends[grantModeOf(!h.reader)])
	}
}

// endInMode is when a hold with a lease has ended of which the lock reported that it was lost, and in which mode: it
// knows the leases of the two modes apart, so that a grant in the other mode extends none. never: it did not report
// that.
func (e *extents) endInMode(i int32) time.Duration {
	h := &e.holds[i]
	lease, n := e.h.Spans[h.span].Lease, e.noticeAt(h.endEvent)
	if lease == 0 || h.ending != endLost || n == nil || !n.Moded {
		return never
	}
	end := later(h.from, lease)
	if e.renewedInMode != nil {
		end = max(end, e.renewedInMode[i])
	}
	return end
}

// renewalList is every renewal that succeeded or may have, and every acquire inside a hold: its lease may be the longer
// one, and lasts after its release.
func (e *extents) renewalList() (list []renewal) {
	for i, s := range refsAt(e.h.Spans, e.rare) {
		if s.Op == history.OpRenew && s.Outcome != history.Fail {
			list = append(list, renewal{s.Owner, s.Key, e.latestEffect(i), s.Lease, anyMode})
		}
	}
	for _, s := range refsAt(e.h.Spans, e.regrants) {
		list = append(list, renewal{
			s.Owner, s.Key, s.Return, cmp.Or(s.Lease, e.longestLease), grantModeOf(!s.Write)})
	}
	for _, n := range refs(e.h.Notices) {
		if n.F == history.Renewed {
			list = append(list, renewal{n.Owner, n.Key, n.Time, 0, anyMode})
		}
	}
	return list
}

// enteredAgain is when the leases of the hold in which s was invoked have ended: if s, of unknown outcome, entered it
// once more, the releases that its owner knows of leave that level, with the longest of them. 0: s was not invoked in
// a hold.
func (e *extents) enteredAgain(s *history.Span) time.Duration {
	i, is := e.lastHold(s.Owner, s.Key, s.Call)
	if !is || e.holds[i].until < s.Call || e.h.Limit(s.Key) != 0 {
		return 0
	}
	if e.regranted == nil {
		e.regranted = make(map[ownerKey][]renewal)
		for _, r := range e.renewalList() {
			e.regranted[ownerKey{r.owner, r.key}] = append(e.regranted[ownerKey{r.owner, r.key}], r)
		}
	}
	end := e.leaseEnd(i)
	for _, r := range e.regranted[ownerKey{s.Owner, s.Key}] {
		if r.at >= e.holds[i].from {
			end = max(end, later(r.at, r.lease))
		}
	}
	return end
}
