package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// capacitySweep visits the holds of a key and the requests that wait for it, in the order of time.
type capacitySweep struct {
	*view
	k     *sharedKey
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
	d     occupancy
	by    int64 // +1: it begins, -1: it ends; 0: the size may change
	waits bool
}

func (r *capacitySweep) add(d occupancy, waits bool) {
	r.marks = append(r.marks, capacityMark{d.from, d, +1, waits})
	if d.until < never {
		r.marks = append(r.marks, capacityMark{d.until, d, -1, waits})
	}
}

// apply applies a change.
func (r *capacitySweep) apply(m capacityMark) {
	switch {
	case !m.waits:
		r.held.permits += m.by * m.d.permits
		if r.held.count += m.by; m.d.writer {
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
func (r *capacitySweep) fits(permits int64, s segment) bool {
	if !r.k.semaphore {
		return r.held.writers == 0 && (r.overtakes || r.writers == 0)
	}
	if permits == 0 {
		for n := range r.waiting { // in any order: the largest counts
			permits = max(permits, n)
		}
	}
	size, _ := r.sizesIn(r.k.key, s)
	return r.held.permits+permits <= size
}

// gaps are the times, longer than slack, in which there was room without a break.
func (r *capacitySweep) gaps(permits int64, slack time.Duration) (gaps []segment) {
	r.held, r.waiting, r.writers = occupancySum{}, make(map[int64]int), 0
	from := never
	for n, m := range r.marks {
		r.apply(m)
		next := r.h.End
		if n+1 < len(r.marks) {
			next = min(r.marks[n+1].at, r.h.End)
		}
		if next-m.at < 2 { // nothing is between them
			continue
		}
		switch is := r.fits(permits, segment{m.at + 1, next - 1}); {
		case is:
			from = min(from, m.at)
		case from < never:
			gaps, from = appendLonger(gaps, segment{from, m.at}, slack), never
		}
	}
	if from < never {
		gaps = appendLonger(gaps, segment{from, r.h.End}, slack)
	}
	return gaps
}

func appendLonger(list []segment, s segment, least time.Duration) []segment {
	if s.until-s.from <= least {
		return list
	}
	return append(list, s)
}

// waitedWithCapacity visits the acquires that waited for longer than the slack, in one part in which there was room for
// them, the servers were available and their clients ran: of readers, and for permits. gaveUp are acquires whose wait
// ran out.
func (v *view) waitedWithCapacity(k *sharedKey, gaveUp map[int32]bool, o Options, visit func(span int32, s segment)) {
	slack := o.slack()
	long := slices.DeleteFunc(slices.Clone(k.requests), func(i int32) bool {
		s := &v.h.Spans[i]
		_, most := v.sizesIn(k.key, segment{s.Call, s.Return})
		return s.Op != history.OpAcquire || s.Return-s.Call <= slack || !k.semaphore && s.Write ||
			k.semaphore && int64(s.Permits) > most || s.Outcome != history.OK && !gaveUp[i]
	})
	if len(long) == 0 {
		return
	}
	r := v.newCapacitySweep(k, o)
	away := v.outages(o)
	gaps := make(map[int64][]segment) // by permits
	for i, s := range refsAt(v.h.Spans, long) {
		permits := int64(0)
		if o.states(promise.NoHeadOfLineBlocking) && k.semaphore {
			permits = int64(s.Permits)
		}
		list, known := gaps[permits]
		if !known && len(gaps) < maxSizes {
			list = r.gaps(permits, slack)
			gaps[permits] = list
		}
		first, _ := slices.BinarySearchFunc(list, s.Call, func(g segment, t time.Duration) int {
			return cmp.Compare(g.until, t)
		})
		pauses := v.clientPauses()[v.client(i)]
		for _, g := range list[first:] {
			if g.from >= s.Return {
				break
			}
			wait := segment{max(g.from, s.Call), min(g.until, s.Return)}
			p := longestOutside(wait, away.windows, pauses)
			if p.until-p.from > slack && o.states(promise.Fair) && o.applies(wakeAhead) {
				p = longestOutside(wait, away.windows, pauses, v.servedBefore(k, s, o))
			}
			if p.until-p.from > slack {
				visit(i, p)
				break
			}
		}
	}
}

// servedBefore are the instants during the wait of s, an acquire at a fair lock, at which an earlier acquire ended, and
// the times in which an earlier one waited for a client that a fault disturbed. Only then s may be the next, and a
// waiter that no message reaches learns that when it polls.
func (v *view) servedBefore(k *sharedKey, s *history.Span, o Options) (times []segment) {
	dis := v.disturbances(o)
	for i, x := range refsAt(v.h.Spans, k.requests) {
		if x.Call > later(s.Call, o.queueDelay()) {
			break
		}
		switch until := v.queuedUntil(i, dis); {
		case x == s || x.Op != history.OpAcquire || until <= s.Call:
		case dis.mayAffect(segment{x.Call, until}, v.client(i), history.AffectsTraffic, history.AffectsClients):
			times = append(times, segment{x.Call, until})
		case x.Return > s.Call && x.Return < s.Return:
			times = append(times, segment{x.Return, x.Return})
		}
	}
	return times
}

// maxSizes is for how many numbers of permits the gaps of a key are computed.
const maxSizes = 64

// waiterTimeout is how long a lock may keep the waiter of a client that died, or that could not report that it gave up,
// and how long a waiter that lost its place in the queue may be without one: 10 s, or the longest lease of its client
// if that is longer, because a session may be as long as the first lease; never if the lock has no leases. Package lock
// keeps a waiter for three heartbeats, at most 6 s.
func (e *extents) waiterTimeout(s *history.Span) time.Duration {
	lease := max(s.Lease, e.longestLease)
	if lease == 0 {
		return never
	}
	return max(10*time.Second, lease, e.longestRequested()[s.Process.Client(e.h.Clients)])
}

// findRequested finds, by client, the longest lease that it requested.
func (e *extents) findRequested() map[int]time.Duration {
	requested := make(map[int]time.Duration)
	for _, s := range refs(e.h.Spans) {
		if isAcquire(s.Op) && s.Lease > 0 {
			of := s.Process.Client(e.h.Clients)
			requested[of] = max(requested[of], s.Lease)
		}
	}
	return requested
}

// dequeued is when the lock has certainly removed the queue entry of a failed acquire; never if its client may still
// send the request. A lock whose poll interval is known keeps a dead waiter for at most a few polls.
func (e *extents) dequeued(i int32) time.Duration {
	timeout := e.waiterTimeout(&e.h.Spans[i])
	if e.poll > 0 {
		timeout = min(timeout, 5*e.poll)
	}
	return later(e.lastRequest(i), timeout)
}

// lastRequest is the time by which the last request of an acquire has arrived.
func (e *extents) lastRequest(i int32) time.Duration {
	last, client := e.latestEffect(i), e.client(i)
	if at, ok := e.crashed[client]; ok && at >= e.h.Spans[i].Call {
		last = min(last, at)
	}
	return e.faults.deliveredBy(last, client)
}

// mayLinger reports whether the waiter of an acquire may stay in the queue after the acquire has ended: it failed
// during a fault, or at most the slack before one. The client may leave the queue only after it has replied, and a
// server may refuse that request.
func (v *view) mayLinger(i int32, dis disturbances) bool {
	s := &v.h.Spans[i]
	return s.Op == history.OpAcquire && s.Outcome != history.OK && dis.mayAffect(
		segment{s.Call, later(s.Return, dis.slack)}, v.client(i),
		history.AffectsData, history.AffectsTraffic, history.AffectsCommands, history.AffectsClients)
}

// queuedUntil is until when acquire or try i can have been in the queue of its lock.
func (v *view) queuedUntil(i int32, dis disturbances) time.Duration {
	if v.mayLinger(i, dis) {
		return v.freeTimes().extents.dequeued(i)
	}
	return v.h.Spans[i].Return
}

// lingeringWriters are, by key, the times in which a writer whose acquire has failed may still keep readers out, at a
// lock where a writer that waits does so.
func (v *view) lingeringWriters(o Options) map[int32][]segment {
	if o.states(promise.NoHeadOfLineBlocking) {
		return nil
	}
	times, dis := make(map[int32][]segment), v.disturbances(o)
	for _, k := range v.sharedKeys() {
		for i, s := range refsAt(v.h.Spans, k.requests) {
			if !k.semaphore && s.Write && v.mayLinger(i, dis) {
				times[k.key] = append(times[k.key], segment{s.Call, v.freeTimes().extents.dequeued(i)})
			}
		}
	}
	return times
}

// newCapacitySweep lists the events at a key. A request that may linger counts as waiting for a time after it failed.
func (v *view) newCapacitySweep(k *sharedKey, o Options) *capacitySweep {
	r := &capacitySweep{view: v, k: k, overtakes: o.states(promise.NoHeadOfLineBlocking)}
	e, dis := v.freeTimes().extents, v.disturbances(o)
	for _, d := range e.possiblyHeld(k.key, false, 0) {
		r.add(d, false)
	}
	for i, s := range refsAt(v.h.Spans, k.requests) {
		if s.Op != history.OpAcquire {
			continue
		}
		r.add(newOccupancy(s, s.Call, v.queuedUntil(i, dis)), true)
	}
	for _, t := range v.resizes()[k.key].times {
		r.marks = append(r.marks, capacityMark{at: t.from}, capacityMark{at: t.until})
	}
	slices.SortStableFunc(r.marks, func(a, b capacityMark) int { return cmp.Compare(a.at, b.at) })
	return r
}
