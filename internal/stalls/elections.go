package stalls

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// A stall of the harness stops its gates, through which servers reach each other. They find a master silent after
// electedAfter at the earliest, and may promote another server until electedUntil after the stall.
const (
	electedAfter = time.Second
	electedUntil = 10 * time.Second
)

// Elections finds a server that was promoted because the harness did not run: a failover that no fault had planned, in
// which a grant may be lost. The zero value has seen nothing. It is not safe for concurrent use.
type Elections struct {
	stalls   []history.Event
	promoted []history.Event // before a fault that leads to an election
	planned  bool            // such a fault was injected
}

// Add adds an event of the history.
func (e *Elections) Add(event history.Event) {
	if event.Process != history.Nemesis || event.Value == nil || event.Value.Fault == nil {
		return
	}
	switch f := event.Value.Fault; {
	case event.F == history.HarnessStalled && f.Lasted >= electedAfter:
		e.stalls = append(e.stalls, event)
	case event.F == history.NodePromoted && !e.planned:
		e.promoted = append(e.promoted, event)
	case f.Phase == history.Injected && !strings.HasPrefix(f.Target, "client:"):
		e.planned = e.planned || slices.Contains(electing(), f.Class)
	}
}

// electing are the classes of faults on a server that lead to an election.
func electing() []string {
	return []string{history.FaultKills, history.FaultRestarts, history.FaultForgets, history.FaultPauses,
		history.FaultPromotes}
}

// Text says which server was promoted; "": none.
func (e *Elections) Text() string {
	for _, p := range e.promoted {
		for _, s := range e.stalls {
			lasted := s.Value.Fault.Lasted
			if s.Time-lasted <= p.Time && p.Time <= s.Time+electedUntil {
				return fmt.Sprintf("The harness did not run for %s, and %s was promoted at %s because of it",
					format.Duration(lasted), p.Value.Fault.Target, format.Instant(p.Time))
			}
		}
	}
	return ""
}
