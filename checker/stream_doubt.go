package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
)

// doubtLate notes the outlived leases found so far that an event about an earlier time may excuse: a stall is noted at
// its end, a loss may be reported long after it, and a busy machine delays that report.
func (s *Stream) doubtLate(e *history.Event) {
	h, late := s.b.History(), s.o.ReportDelay
	if e.Value != nil {
		late = segment.Later(late, e.Value.Age)
	}
	if e.F == history.Lost && late > 0 {
		s.doubt(max(0, e.Time-late), e.Process.Client(h.Clients))
	}
	if n := len(h.Faults) - 1; n >= 0 && h.Faults[n].Index == int32(e.Index) && h.Faults[n].Stalled() {
		f := &h.Faults[n]
		s.doubt(f.Time-f.Lasted, (&excuse.FaultTime{Target: f.Target}).Client()) // the harness is AnyClient
	}
}

// doubt notes the outlived leases of a client that began at since or later, until the stream finds them again.
func (s *Stream) doubt(since time.Duration, client int) {
	s.belated = true
	for _, found := range s.found {
		for n, w := range found.list {
			if w.Class == property.OutlivedLease && since <= w.Start &&
				(client == excuse.AnyClient || slices.Contains(w.Clients, client)) {
				found.doubted[n] = true
			}
		}
	}
}
