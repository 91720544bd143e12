// Package excuse finds the faults and the stops of clients and servers that excuse a lock for its behavior.
package excuse

import (
	"sync"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// View is a history with the faults that were in force and the times in which clients and servers did not run.
type View struct {
	H *history.History

	// computed when needed, once
	FaultTimes   func() []FaultTime               // see findFaults
	Silences     func() []FaultTime               // see findSilences
	ClientPauses func() map[int][]segment.Segment // see findPauses
	ClientStalls func() map[int][]segment.Segment // see findStalls
	RenewalStops func() map[int][]segment.Segment // see findRenewalStops
	Homes        func() []string                  // see findHomes
}

// New is the view of a history.
func New(h *history.History, o given.Options) *View {
	v := &View{H: h}
	v.RenewalStops = sync.OnceValue(func() map[int][]segment.Segment { return v.findRenewalStops(o) })
	v.ClientPauses, v.ClientStalls = sync.OnceValue(v.findPauses), sync.OnceValue(v.findStalls)
	v.FaultTimes, v.Silences = sync.OnceValue(v.findFaults), sync.OnceValue(v.findSilences)
	return v
}

// Client is the client that invoked a span.
func (v *View) Client(span int32) int { return v.H.Spans[span].Process.Client(v.H.Clients) }

// IsAcquire reports whether an operation asks for the lock.
func IsAcquire(op history.Op) bool { return op == history.OpAcquire || op == history.OpTry }

// IsLockOp reports whether s acquires or releases the lock.
func IsLockOp(s *history.Span) bool { return IsAcquire(s.Op) || s.Op == history.OpRelease }
