package reports

import (
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// hold is a hold as [checker.FindHolds] finds it, with an end that can be drawn.
type hold struct {
	checker.Hold
	to time.Duration // Until, or the end of the history
}

// findHolds are the holds of a history of that many clients.
func findHolds(h *history.History, o checker.Options, clients int) []hold {
	named := *h
	named.Clients = clients
	var holds []hold
	for _, found := range checker.FindHolds(&named, o) {
		holds = append(holds, hold{found, max(found.From, min(found.Until, h.End))})
	}
	return holds
}

// validUntil is the end of the last promise; 0 if the lock was promised without an end.
func (h *hold) validUntil() time.Duration {
	if n := len(h.Promises); n > 0 && h.Promises[n-1].Until != history.Infinity {
		return h.Promises[n-1].Until
	}
	return 0
}

// what is held, for people: permits of a semaphore, or the lock, in the words given.
func (h *hold) what(lock string) string {
	switch h.Permits {
	case 0:
		return lock
	case 1:
		return "1 permit"
	}
	return fmt.Sprintf("%d permits", h.Permits)
}

// faultLife is one injected fault from its injection to its end.
type faultLife struct {
	id     int
	name   string
	target string
	inject time.Duration
	bites  []history.Fault // where its effect was observed; empty: it tested nothing
	heal   time.Duration   // history.Infinity if it was not healed
	detail string
	event  int32 // index of the injection
}

// end is when the fault's bar ends in a drawing that ends at limit.
func (f *faultLife) end(limit time.Duration) time.Duration { return min(f.heal, limit) }

// hit is when the fault had its effect: the first bite, else the injection.
func (f *faultLife) hit() time.Duration {
	if len(f.bites) > 0 {
		return f.bites[0].Time
	}
	return f.inject
}

// findFaults joins the phases of each fault, and collects those that never came
// and the notes that belong to none.
func findFaults(h *history.History) (lives []faultLife, missed, notes []history.Fault) {
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
			at = len(lives)
			byID[e.ID] = at
			lives = append(lives, faultLife{id: e.ID, name: e.Name, target: e.Target, inject: e.Time,
				heal: history.Infinity, detail: e.Detail, event: e.Index})
		}
		life := &lives[at]
		switch e.Phase {
		case history.TookEffect:
			life.bites = append(life.bites, e)
		case history.Healed:
			life.heal = e.Time
		}
		if life.target == "" {
			life.target = e.Target
		}
	}
	return lives, missed, notes
}
