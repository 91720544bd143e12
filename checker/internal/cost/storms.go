package cost

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
)

// This file is about requests without a pause, of a lock that states [promise.BoundedCost]; see requests.go.

// The bounds of a lock with bounded cost.
const (
	RequestsPerSecond = 200             // of one client, in addition to its operations' own
	RequestsPerOp     = 20              // for each operation that is in flight
	DialsPerSecond    = 25              // for each operation that is in flight, and each hold
	DialsWindow       = 3 * time.Second // in which delays drawn at random are long enough on average
)

// EachWindow calls visit for the windows of at least the given length that contain whole intervals between points, from
// each point back, until it returns false.
func (s *requestSeries) EachWindow(length time.Duration, visit func(a, b *RequestPoint,
	during segment.Segment) (more bool)) {
	first := 0
	for i, b := range refs.All(s.Points) {
		for first+1 < int(i) && b.Sent-s.Points[first+1].Time >= length {
			first++
		}
		a := &s.Points[first]
		if b.Sent-a.Time >= length && !visit(a, b, segment.Of(a.Sent, b.Time)) {
			return
		}
	}
}

// BusyTime adds up how much of s the operations of a process were in flight and it may have had holds, at least once
// the length of s.
func BusyTime(v *bounds.View, of *requestSeries, s segment.Segment) (sum time.Duration) {
	within := func(from, until time.Duration) time.Duration { return max(0, min(until, s.Until)-max(from, s.From)) }
	for i, x := range refs.All(v.H.Spans) {
		if of.has(v.Client(i)) {
			sum += within(x.Call, x.Return)
		}
	}
	e := v.FreeTimes().Extents
	for _, h := range refs.All(e.Holds) {
		if of.has(v.Client(h.Span)) {
			sum += within(h.From, knownUntil(v, h))
		}
	}
	return max(sum, s.Until-s.From)
}

// OpsOf is how many operations of a process were in flight during s.
func OpsOf(v *bounds.View, of *requestSeries, s segment.Segment) (n int) {
	for i, x := range refs.All(v.H.Spans) {
		if x.Call <= s.Until && x.Return >= s.From && of.has(v.Client(i)) {
			n++
		}
	}
	return n
}
