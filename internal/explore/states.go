package explore

import (
	"bytes"
	"maps"
	"slices"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// States are the interesting states that a history reached, sorted: those that
// a lock has to be right in and that few runs come to. They are read from what was recorded alone.
func States(text []byte) []string {
	s := scout{holds: checker.NewLiveHolds(0), faults: map[int]bool{}, seen: map[string]bool{}}
	events := history.NewScanner(bytes.NewReader(text))
	for events.Next() {
		s.see(events.Event())
	}
	return slices.Sorted(maps.Keys(s.seen))
}

// scout follows a history and notes where it has been.
type scout struct {
	holds  *checker.LiveHolds
	faults map[int]bool // in force
	seen   map[string]bool
}

func (s *scout) see(e *history.Event) {
	if e.Process == history.Nemesis {
		s.seeFault(e)
		return
	}
	if e.Value != nil {
		s.seeClient(e)
	}
	if s.holds.Add(e); s.holds.Conflict(e.Key) {
		s.seen["two holders at once"] = true
	}
}

// seeClient looks at an event of a client before it has its effect on who holds what.
func (s *scout) seeClient(e *history.Event) {
	switch {
	case e.F == history.Acquire || e.F == history.Try:
		s.seeAcquire(e)
	case e.F == history.Release:
		s.seeRelease(e)
	case e.F == history.Lost:
		s.seen["a loss was reported"] = true
	case e.F == history.Renew && e.Type == history.Fail:
		s.seen["a renewal was refused"] = true
	case e.F == history.Touch && e.Type == history.Fail:
		s.seen["a stale write was refused"] = true
	case e.F == history.Touch && e.Value.Touch != nil:
		if _, held := s.holds.Find(e.Key, e.Value.Owner); !held {
			s.seen["a write after the loss was reported"] = true
		}
	}
}

func (s *scout) seeAcquire(e *history.Event) {
	switch e.Type {
	case history.OK:
		if len(s.faults) > 0 {
			s.seen["granted during a fault"] = true
		}
	case history.Info:
		s.seen["an acquire of unknown outcome"] = true
	case history.Fail:
		if e.Error != nil && e.Error.Code != history.CodeHeld && e.Error.Code != "timeout" {
			s.seen["an acquire failed: "+e.Error.Code] = true
		}
	}
}

func (s *scout) seeRelease(e *history.Event) {
	switch e.Type {
	case history.Invoke:
		if h, held := s.holds.Find(e.Key, e.Value.Owner); held && e.Time > h.Valid {
			s.seen["a holder outlived its lease"] = true
		}
	case history.Info:
		s.seen["a release of unknown outcome"] = true
	case history.Fail:
		s.seen["a release was refused"] = true
	}
}

func (s *scout) seeFault(e *history.Event) {
	if e.Value == nil || e.Value.Fault == nil {
		return
	}
	f, held := e.Value.Fault, len(s.holds.Keys()) > 0
	switch f.Phase {
	case history.Injected:
		if s.faults[f.ID] = true; len(s.faults) > 1 {
			s.seen["two faults at once"] = true
		}
	case history.Healed:
		delete(s.faults, f.ID)
	case history.TookEffect:
		if held {
			s.seen[e.F+" took effect while the lock was held"] = true
		}
	case history.Noted:
		if held && e.F == history.NodePromoted {
			s.seen["a replica was promoted while the lock was held"] = true
		}
	}
}
