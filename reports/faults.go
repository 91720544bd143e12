package reports

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// injection is an injected fault.
type injection struct {
	name    string
	target  string
	inject  time.Duration
	effects []history.Fault // observed; empty: it tested nothing
	heal    time.Duration   // history.Infinity if it was not healed
	detail  string
	event   int32 // index of the injection
}

// end is when the fault ends in a drawing that ends at limit.
func (f *injection) end(limit time.Duration) time.Duration { return min(f.heal, limit) }

// effectTime is when the fault took effect, or else was injected.
func (f *injection) effectTime() time.Duration {
	if len(f.effects) > 0 {
		return f.effects[0].Time
	}
	return f.inject
}

// injectionsOf joins the events of each injected fault. It also returns the faults
// that were never injected, and the observations that belong to no fault.
func injectionsOf(h *history.History) (injections []injection, missed, notes []history.Fault) {
	byID := map[int]int{}
	for _, e := range h.Faults {
		at, ok := byID[e.ID]
		switch {
		case e.Phase == history.Missed:
			missed = append(missed, e)
			continue
		case e.Phase == history.Noted || e.ID == 0:
			notes = append(notes, e)
			continue
		}
		if !ok {
			at = len(injections)
			byID[e.ID] = at
			injections = append(injections, injection{name: e.Name, target: e.Target, inject: e.Time,
				heal: history.Infinity, detail: e.Detail, event: e.Index})
		}
		f := &injections[at]
		switch e.Phase {
		case history.TookEffect:
			f.effects = append(f.effects, e)
		case history.Healed:
			f.heal = e.Time
		}
		if f.target == "" {
			f.target = e.Target
		}
	}
	return injections, missed, notes
}
