package waiting

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// capacitySweep visits the holds of a key and the requests that wait for it, in the order of time.
type capacitySweep struct {
	*bounds.View
	k     *SharedKey
	marks []capacityMark
	// overtakes: waiting requests do not matter to a request that fits (promise no-head-of-line-blocking)
	overtakes bool
	held      occupancySum
	// the number of waiting requests, by their permits
	waiting map[int64]int
	writers int // that wait
}

// capacityMark is a change at an instant.
type capacityMark struct {
	at    time.Duration
	d     Occupancy
	by    int64 // +1: it begins, -1: it ends; 0: the size may change
	waits bool
}

func (r *capacitySweep) add(d Occupancy, waits bool) {
	r.marks = append(r.marks, capacityMark{d.From, d, +1, waits})
	if d.Until < segment.Never {
		r.marks = append(r.marks, capacityMark{d.Until, d, -1, waits})
	}
}

// apply applies a change.
func (r *capacitySweep) apply(m capacityMark) {
	switch {
	case !m.waits:
		r.held.Permits += m.by * m.d.permits
		if r.held.Count += m.by; m.d.writer {
			r.held.writers += m.by
		}
		return
	case m.d.writer:
		r.writers += int(m.by)
	}
	if r.waiting[m.d.permits] += int(m.by); r.waiting[m.d.permits] == 0 {
		delete(r.waiting, m.d.permits)
	}
}

// fits reports whether there is room in s for a request of some permits, or with 0 for each that waits.
func (r *capacitySweep) fits(permits int64, s segment.Segment) bool {
	if !r.k.Semaphore {
		return r.held.writers == 0 && (r.overtakes || r.writers == 0)
	}
	if permits == 0 {
		for n := range r.waiting { // in any order: the largest counts
			permits = max(permits, n)
		}
	}
	size, _ := r.SizesIn(r.k.Key, s)
	return r.held.Permits+permits <= size
}

// Gaps are the times, longer than slack, in which there was room without a break.
func (r *capacitySweep) Gaps(permits int64, slack time.Duration) (gaps []segment.Segment) {
	r.held, r.waiting, r.writers = occupancySum{}, make(map[int64]int), 0
	from := segment.Never
	for n, m := range r.marks {
		r.apply(m)
		next := r.H.End
		if n+1 < len(r.marks) {
			next = min(r.marks[n+1].at, r.H.End)
		}
		if next-m.at < 2 { // nothing is between them
			continue
		}
		switch is := r.fits(permits, segment.Of(m.at+1, next-1)); {
		case is:
			from = min(from, m.at)
		case from < segment.Never:
			gaps, from = segment.AppendLonger(gaps, segment.Of(from, m.at), slack), segment.Never
		}
	}
	if from < segment.Never {
		gaps = segment.AppendLonger(gaps, segment.Of(from, r.H.End), slack)
	}
	return gaps
}

// ServedBefore are the instants during the wait of s, an acquire at a fair lock, at which an earlier acquire ended, and
// the times in which an earlier one waited for a client that a fault disturbed. Only then s may be the next, and a
// waiter that no message reaches learns that when it polls.
func ServedBefore(v *bounds.View, k *SharedKey, s *history.Span, o given.Options) (times []segment.Segment) {
	dis := v.Disturbances(o)
	for i, x := range refs.At(v.H.Spans, k.Requests) {
		if x.Call > segment.Later(s.Call, o.QueueDelay()) {
			break
		}
		switch until := v.QueuedUntil(i, dis); {
		case x == s || x.Op != history.OpAcquire || until <= s.Call:
		case dis.MayAffect(segment.Of(x.Call, until), v.Client(i), history.AffectsTraffic, history.AffectsClients):
			times = append(times, segment.Of(x.Call, until))
		case x.Return > s.Call && x.Return < s.Return:
			times = append(times, segment.Of(x.Return, x.Return))
		}
	}
	return times
}

// MaxSizes is for how many numbers of permits the gaps of a key are computed.
const MaxSizes = 64

// lingeringWriters are, by key, the times in which a writer whose acquire has failed may still keep readers out, at a
// lock where a writer that waits does so.
func lingeringWriters(v *bounds.View, o given.Options) map[int32][]segment.Segment {
	if o.States(promise.NoHeadOfLineBlocking) {
		return nil
	}
	times, dis := make(map[int32][]segment.Segment), v.Disturbances(o)
	for _, k := range SharedKeys(v) {
		for i, s := range refs.At(v.H.Spans, k.Requests) {
			if !k.Semaphore && s.Write && v.MayLinger(i, dis) {
				times[k.Key] = append(times[k.Key], segment.Of(s.Call, v.FreeTimes().Extents.Dequeued(i)))
			}
		}
	}
	return times
}

// NewCapacitySweep lists the events at a key. A request that may linger counts as waiting for a time after it failed.
func NewCapacitySweep(v *bounds.View, k *SharedKey, o given.Options) *capacitySweep {
	r := &capacitySweep{View: v, k: k, overtakes: o.States(promise.NoHeadOfLineBlocking)}
	e, dis := v.FreeTimes().Extents, v.Disturbances(o)
	for _, d := range possiblyHeld(e, k.Key, false, 0) {
		r.add(d, false)
	}
	for i, s := range refs.At(v.H.Spans, k.Requests) {
		if s.Op != history.OpAcquire {
			continue
		}
		r.add(NewOccupancy(s, s.Call, v.QueuedUntil(i, dis)), true)
	}
	for _, t := range v.Resizes()[k.Key].Times {
		r.marks = append(r.marks, capacityMark{at: t.From}, capacityMark{at: t.Until})
	}
	slices.SortStableFunc(r.marks, func(a, b capacityMark) int { return cmp.Compare(a.at, b.at) })
	return r
}
