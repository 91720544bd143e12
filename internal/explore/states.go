package explore

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// States are the interesting states that a history reached, sorted: those that
// a lock has to be right in and that few runs come to. They are read from what was recorded alone.
func States(text []byte) []string {
	s := scout{holds: map[string]map[string]time.Duration{}, faults: map[int]bool{}, seen: map[string]bool{}}
	events := history.NewScanner(bytes.NewReader(text))
	for events.Next() {
		s.see(*events.Event())
	}
	return slices.Sorted(maps.Keys(s.seen))
}

// scout follows a history and notes where it has been.
type scout struct {
	holds  map[string]map[string]time.Duration // by key and owner: until when it is promised; 0: not promised
	faults map[int]bool                        // in force
	seen   map[string]bool
}

func (s *scout) see(e history.Event) {
	if e.Process == history.Nemesis {
		s.seeFault(e)
		return
	}
	if e.Value == nil {
		return
	}
	held := s.holds[e.Key]
	switch {
	case e.F == history.Acquire || e.F == history.Try:
		s.seeAcquire(e, held)
	case e.F == history.Renewed && held != nil:
		held[e.Value.Owner] = e.Time + e.Value.Valid
	case e.F == history.Release:
		s.seeRelease(e, held)
	case e.F == history.Lost:
		s.seen["a holder was told of its loss"] = true
		delete(held, e.Value.Owner)
	case e.F == history.Renew && e.Type == history.Fail:
		s.seen["a renewal was refused"] = true
	case e.F == history.Touch && e.Value.Touch != nil:
		s.seeTouch(e, held)
	}
}

func (s *scout) seeAcquire(e history.Event, held map[string]time.Duration) {
	switch e.Type {
	case history.OK:
		if held == nil {
			held = map[string]time.Duration{}
			s.holds[e.Key] = held
		}
		if len(held) > 0 {
			s.seen["two holders at once"] = true
		}
		if held[e.Value.Owner] = 0; e.Value.Valid > 0 {
			held[e.Value.Owner] = e.Time + e.Value.Valid
		}
		if len(s.faults) > 0 {
			s.seen["granted while something was broken"] = true
		}
	case history.Info:
		s.seen["an acquire of unknown outcome"] = true
	case history.Fail:
		if e.Error != nil && e.Error.Code != "held" && e.Error.Code != "timeout" {
			s.seen["an acquire failed: "+e.Error.Code] = true
		}
	}
}

func (s *scout) seeRelease(e history.Event, held map[string]time.Duration) {
	switch e.Type {
	case history.Invoke:
		if until := held[e.Value.Owner]; until > 0 && e.Time > until {
			s.seen["a holder outlived its lease"] = true
		}
		delete(held, e.Value.Owner)
	case history.Info:
		s.seen["a release of unknown outcome"] = true
	case history.Fail:
		s.seen["a release was refused"] = true
	}
}

func (s *scout) seeTouch(e history.Event, held map[string]time.Duration) {
	if e.Type == history.Fail {
		s.seen["a stale write was refused"] = true
	} else if _, ok := held[e.Value.Owner]; !ok {
		s.seen["a write after the loss was told"] = true
	}
}

func (s *scout) seeFault(e history.Event) {
	if e.Value == nil || e.Value.Fault == nil {
		return
	}
	f := e.Value.Fault
	held := false
	for _, h := range s.holds { // order does not matter: any counts
		held = held || len(h) > 0
	}
	switch f.Phase {
	case history.Injected:
		if s.faults[f.ID] = true; len(s.faults) > 1 {
			s.seen["two faults at once"] = true
		}
	case history.Healed:
		delete(s.faults, f.ID)
	case history.TookEffect:
		if held {
			s.seen[e.F+" bit while the lock was held"] = true
		}
	case history.Noted:
		if held && e.F == "promoted" {
			s.seen["a replica was promoted while the lock was held"] = true
		}
	}
}
