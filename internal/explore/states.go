package explore

import (
	"maps"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/liveholds"
)

// States collects the interesting states that a history reaches: difficult for a lock and rare in runs.
type States struct {
	holds  *liveholds.Holds
	faults map[int]bool // in force
	found  map[string]bool
}

// NewStates begins to collect.
func NewStates() *States {
	return &States{holds: liveholds.New(0), faults: map[int]bool{}, found: map[string]bool{}}
}

// Reached are the states, sorted.
func (s *States) Reached() []string { return slices.Sorted(maps.Keys(s.found)) }

// Add takes the next event of the history.
func (s *States) Add(e *history.Event) {
	if e.Process == history.Nemesis {
		s.addFault(e)
		return
	}
	if e.Value != nil {
		s.addClient(e)
	}
	if s.holds.Add(e); s.holds.Conflict(e.Key) {
		s.found["two holders at once"] = true
	}
}

// addClient takes an event of a client before holds does.
func (s *States) addClient(e *history.Event) {
	switch {
	case e.F == history.Acquire || e.F == history.Try:
		s.addAcquire(e)
	case e.F == history.Release:
		s.addRelease(e)
	case e.F == history.Lost:
		s.found["a loss was reported"] = true
	case e.F == history.Renew && e.Type == history.Fail:
		s.found["a renewal was refused"] = true
	case e.F == history.Touch && e.Type == history.Fail:
		s.found["a stale write was refused"] = true
	case e.F == history.Touch && e.Value.Touch != nil:
		if _, held := s.holds.Find(e.Key, e.Value.Owner); !held {
			s.found["a write after the loss was reported"] = true
		}
	}
}

func (s *States) addAcquire(e *history.Event) {
	switch e.Type {
	case history.OK:
		if len(s.faults) > 0 {
			s.found["granted during a fault"] = true
		}
	case history.Info:
		s.found["an acquire of unknown outcome"] = true
	case history.Fail:
		if e.Error != nil && e.Error.Code != history.CodeHeld && e.Error.Code != "timeout" {
			s.found["an acquire failed: "+e.Error.Code] = true
		}
	}
}

func (s *States) addRelease(e *history.Event) {
	switch e.Type {
	case history.Invoke:
		if h, held := s.holds.Find(e.Key, e.Value.Owner); held && e.Time > h.Valid {
			s.found["a holder outlived its lease"] = true
		}
	case history.Info:
		s.found["a release of unknown outcome"] = true
	case history.Fail:
		s.found["a release was refused"] = true
	}
}

func (s *States) addFault(e *history.Event) {
	if e.Value == nil || e.Value.Fault == nil {
		return
	}
	f, held := e.Value.Fault, len(s.holds.Keys()) > 0
	switch f.Phase {
	case history.Injected:
		if s.faults[f.ID] = true; len(s.faults) > 1 {
			s.found["two faults at once"] = true
		}
	case history.Healed:
		delete(s.faults, f.ID)
	case history.TookEffect:
		if held {
			s.found[e.F+" took effect while the lock was held"] = true
		}
	case history.Noted:
		if held && e.F == history.NodePromoted {
			s.found["a replica was promoted while the lock was held"] = true
		}
	}
}
