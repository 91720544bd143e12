package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/kept"
	"github.com/lockchaos/lockchaos/promise"
)

// This file is about the times in which a client or the harness itself did not run although no fault had stopped it:
// another program did, or the machine slept or was overloaded. While the harness is stopped, the network carries
// nothing and events are recorded late: for the checkers, the servers were unavailable, and so was every client.

// noticedBy is when a fault that was in force during s counts as over: its end, later by the stalls meanwhile, in which
// no client noticed anything. A connection that is silent for good, say, is found dead only by a client that runs.
func (v *view) noticedBy(s segment) time.Duration {
	for _, f := range refs(v.h.Faults) {
		if from := max(s.from, f.Time-f.Lasted); f.Stalled() && from < min(f.Time, s.until) {
			s.from, s.until = f.Time, s.until+f.Time-from
		}
	}
	return s.until
}

// findStalls finds, by client, the stalls of that client and of the harness, disjoint and in their order.
func (v *view) findStalls() map[int][]segment {
	all := v.clientTimes(func(f *faultTime) bool { return f.stall })
	for client, stalls := range all { // order does not matter
		all[client] = mergedSegments(stalls)
	}
	return all
}

// findRenewalStops finds, by client, the times in which it may have renewed no lease; nil: none, or no leases.
func (v *view) findRenewalStops(o Options) map[int][]segment {
	classes := []string{"", history.FaultPauses, history.FaultCuts}
	if o.states(promise.Unleased) {
		return nil
	}
	return v.clientTimes(func(f *faultTime) bool { return slices.Contains(classes, f.class) })
}

// endStalled ends each hold with its promise, if that ended in a stall: its owner could not act on it, or its actions
// were recorded late. Outlived leases are judged where the scenario pauses the holder.
func (v *view) endStalled() {
	for _, h := range refs(v.holds) {
		end := min(h.longestPromise(), v.unrenewedSince(h, v.clientStalls()))
		if end < h.until && v.stalled(h, segment{end, end}) {
			v.endHold(h, end)
		}
	}
}

// unrenewedFrom is the first time at which a hold was without renewals, see [view.unrenewedSince].
func (v *view) unrenewedFrom(h *hold) time.Duration { return v.unrenewedSince(h, v.renewalStops()) }

// unrenewedSince is the time of the first of the stops of its client during a hold whose lease the lock renews by
// itself, without a stated validity: the lease may have ended at any time after that; never: there was no stop. A stop
// after which samples show a renewal does not count: the client renews again.
func (v *view) unrenewedSince(h *hold, stops map[int][]segment) time.Duration {
	client := v.client(h.span)
	renews := v.renewalStops() != nil && h.longestPromise() == never && v.h.Spans[h.span].Lease == 0
	for _, s := range stops[client] {
		again := func(x *kept.Stay) bool { return x.Client == client && x.RenewedIn(s.until, h.until) }
		if renews && s.until > h.from && s.from < h.until &&
			(v.quorum || v.kept() == nil || !slices.ContainsFunc(v.kept().Showing(h.span), again)) {
			return max(h.from, s.from)
		}
	}
	return never
}

// stalled reports whether the client of a hold, or the harness, did not run at some time in s.
func (v *view) stalled(h *hold, s segment) bool {
	return outageWindows{v.clientStalls()[v.client(h.span)]}.touches(s)
}

// endReported ends each hold with its promise, if its loss was reported at most delay after that: a busy machine runs
// the timer of a client so late, and the heartbeat of the harness records longer stalls only.
func (v *view) endReported(delay time.Duration) {
	for _, h := range refs(v.holds) {
		end := h.longestPromise()
		if end < h.until && h.until <= later(end, delay) && v.lossReported(h) {
			v.endHold(h, end)
		}
	}
}

// endHold ends a hold at end, which is before its until.
func (v *view) endHold(h *hold, end time.Duration) {
	if h.until = max(h.from, end); h.ending == endReleased {
		return
	}
	if h.core = min(h.core, h.until); h.ending == endOpen {
		h.ending = endLost
	}
	v.promised[h.span] = h.core
}

// clientTimes are the times of the clients' faults that satisfy is, by client, and the stalls of the harness, which
// concern every client.
func (v *view) clientTimes(is func(*faultTime) bool) map[int][]segment {
	pauses, stalls := make(map[int][]segment), []segment(nil)
	for _, f := range refs(v.faultTimes()) {
		if client := f.client(); client >= 0 && is(f) {
			pauses[client] = append(pauses[client], f.segment)
		} else if f.stall && client < 0 {
			stalls = append(stalls, f.segment)
		}
	}
	if len(stalls) == 0 {
		return pauses
	}
	added := make(map[int][]segment)
	for i := range v.h.Spans {
		client := v.client(int32(i))
		if _, is := added[client]; !is {
			added[client] = merged(pauses[client], stalls)
		}
	}
	return added
}

// writtenStalled reports whether a touch came from a hold whose promise ended, or whose loss was reported, while its
// client or the harness was stopped, or while more servers than may be down did not reply, or at most the slack later.
// A silence that a planned fault at a server (on a quorum: at the same server) may have caused is no excuse.
func (v *view) writtenStalled(touch int32, o Options, excuses func(scope) excuses) bool {
	h, dis := v.writerOf(touch), v.allDisturbances(o)
	if h == nil || v.h.Touches[touch].Time <= h.until {
		return false
	}
	planned := func(s *faultTime) bool {
		return dis.any(s.segment, func(f *faultTime) bool {
			at := targetNodes(f.target)
			return !f.noted && f.client() < 0 && f.affects != history.AffectsDelays &&
				(!v.quorum || slices.Contains(at, s.target) || slices.Contains(at, ""))
		})
	}
	stopped := func(at segment) bool {
		return v.stalled(h, at) || slices.ContainsFunc(v.silences(), func(s faultTime) bool {
			return s.from <= at.until && at.from <= later(s.until, o.slack()) && !planned(&s) &&
				excuses(scope{key: h.key, releaseOrRenewal: true}).away.touches(at)
		})
	}
	end, lost := h.longestPromise(), segment{h.until, h.until}
	if h.until == h.from { // the loss may have come before its grant was recorded
		lost.from = max(h.asked, h.from-o.slack())
	}
	return stopped(segment{end, end}) || v.lossReported(h) && stopped(lost)
}

// doubtLate notes the outlived leases found so far that an event about an earlier time may excuse: a stall is noted at
// its end, a loss may be reported long after it, and a busy machine delays that report.
func (s *Stream) doubtLate(e *history.Event) {
	h, late := s.b.History(), s.o.ReportDelay
	if e.Value != nil {
		late = later(late, e.Value.Age)
	}
	if e.F == history.Lost && late > 0 {
		s.doubt(max(0, e.Time-late), e.Process.Client(h.Clients))
	}
	if n := len(h.Faults) - 1; n >= 0 && h.Faults[n].Index == int32(e.Index) && h.Faults[n].Stalled() {
		f := &h.Faults[n]
		s.doubt(f.Time-f.Lasted, (&faultTime{target: f.Target}).client()) // the harness is anyClient
	}
}

// doubt notes the outlived leases of a client that began at since or later, until the stream finds them again.
func (s *Stream) doubt(since time.Duration, client int) {
	s.belated = true
	for _, found := range s.found {
		for n, w := range found.list {
			if w.Class == OutlivedLease && since <= w.Start && (client == anyClient || slices.Contains(w.Clients, client)) {
				found.doubted[n] = true
			}
		}
	}
}
