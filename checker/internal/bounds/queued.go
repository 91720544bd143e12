package bounds

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// WaiterTimeout is how long a lock may keep the waiter of a client that died, or that could not report that it gave up,
// and how long a waiter that lost its place in the queue may be without one: 10 s, or the longest lease of its client
// if that is longer, because a session may be as long as the first lease; never if the lock has no leases. Package lock
// keeps a waiter for three heartbeats, at most 6 s.
func (e *Extents) WaiterTimeout(s *history.Span) time.Duration {
	lease := max(s.Lease, e.LongestLease)
	if lease == 0 {
		return segment.Never
	}
	return max(10*time.Second, lease, e.longestRequested()[s.Process.Client(e.H.Clients)])
}

// findRequested finds, by client, the longest lease that it requested.
func (e *Extents) findRequested() map[int]time.Duration {
	requested := make(map[int]time.Duration)
	for _, s := range refs.All(e.H.Spans) {
		if excuse.IsAcquire(s.Op) && s.Lease > 0 {
			of := s.Process.Client(e.H.Clients)
			requested[of] = max(requested[of], s.Lease)
		}
	}
	return requested
}

// Dequeued is when the lock has certainly removed the queue entry of a failed acquire; never if its client may still
// send the request. A lock whose poll interval is known keeps a dead waiter for at most a few polls.
func (e *Extents) Dequeued(i int32) time.Duration {
	timeout := e.WaiterTimeout(&e.H.Spans[i])
	if e.Poll > 0 {
		timeout = min(timeout, 5*e.Poll)
	}
	return segment.Later(e.lastRequest(i), timeout)
}

// lastRequest is the time by which the last request of an acquire has arrived.
func (e *Extents) lastRequest(i int32) time.Duration {
	last, client := e.latestEffect(i), e.Client(i)
	if at, ok := e.Crashed[client]; ok && at >= e.H.Spans[i].Call {
		last = min(last, at)
	}
	return e.faults.DeliveredBy(last, client)
}

// MayLinger reports whether the waiter of an acquire may stay in the queue after the acquire has ended: it failed
// during a fault, or at most the slack before one. The client may leave the queue only after it has replied, and a
// server may refuse that request.
func (v *View) MayLinger(i int32, dis excuse.Disturbances) bool {
	s := &v.H.Spans[i]
	return s.Op == history.OpAcquire && s.Outcome != history.OK && dis.MayAffect(
		segment.Of(s.Call, segment.Later(s.Return, dis.Slack)), v.Client(i),
		history.AffectsData, history.AffectsTraffic, history.AffectsCommands, history.AffectsClients)
}

// QueuedUntil is until when acquire or try i can have been in the queue of its lock.
func (v *View) QueuedUntil(i int32, dis excuse.Disturbances) time.Duration {
	if v.MayLinger(i, dis) {
		return v.FreeTimes().Extents.Dequeued(i)
	}
	return v.H.Spans[i].Return
}
