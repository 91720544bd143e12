package excuse

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// This file is about the times in which a client or the harness itself did not run although no fault had stopped it:
// another program did, or the machine slept or was overloaded. While the harness is stopped, the network carries
// nothing and events are recorded late: for the checkers, the servers were unavailable, and so was every client.

// noticedBy is when a fault that was in force during s counts as over: its end, later by the stalls meanwhile, in which
// no client noticed anything. A connection that is silent for good, say, is found dead only by a client that runs.
func (v *View) noticedBy(s segment.Segment) time.Duration {
	for _, f := range refs.All(v.H.Faults) {
		if from := max(s.From, f.Time-f.Lasted); f.Stalled() && from < min(f.Time, s.Until) {
			s.From, s.Until = f.Time, s.Until+f.Time-from
		}
	}
	return s.Until
}

// findStalls finds, by client, the stalls of that client and of the harness, disjoint and in their order.
func (v *View) findStalls() map[int][]segment.Segment {
	all := v.ClientTimes(func(f *FaultTime) bool { return f.Stall })
	for client, stalls := range all { // order does not matter
		all[client] = segment.MergedSegments(stalls)
	}
	return all
}

// findRenewalStops finds, by client, the times in which it may have renewed no lease; nil: none, or no leases.
func (v *View) findRenewalStops(o given.Options) map[int][]segment.Segment {
	classes := []string{"", history.FaultPauses, history.FaultCuts}
	if o.States(promise.Unleased) {
		return nil
	}
	return v.ClientTimes(func(f *FaultTime) bool { return slices.Contains(classes, f.Class) })
}

// ClientTimes are the times of the clients' faults that satisfy is, by client, and the stalls of the harness, which
// concern every client.
func (v *View) ClientTimes(is func(*FaultTime) bool) map[int][]segment.Segment {
	pauses, stalls := make(map[int][]segment.Segment), []segment.Segment(nil)
	for _, f := range refs.All(v.FaultTimes()) {
		if client := f.Client(); client >= 0 && is(f) {
			pauses[client] = append(pauses[client], f.Segment)
		} else if f.Stall && client < 0 {
			stalls = append(stalls, f.Segment)
		}
	}
	if len(stalls) == 0 {
		return pauses
	}
	added := make(map[int][]segment.Segment)
	for i := range v.H.Spans {
		client := v.Client(int32(i))
		if _, is := added[client]; !is {
			added[client] = segment.Merged(pauses[client], stalls)
		}
	}
	return added
}
