package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// injection is an injected fault.
type injection struct {
	name      string
	class     string // its kind, with object; "": unknown, as in histories of earlier versions
	object    string // what it acts on
	verb      string // what it did to its target, as a predicate; "": unknown
	target    string
	inject    time.Duration
	effects   []history.Fault // observed; empty: it tested nothing
	heal      time.Duration   // history.Infinity if it was not healed
	detail    string
	event     int32 // index of the injection
	healEvent int32 // index of the healing; -1 if it was not healed
	single    bool  // over once it has taken effect: there was nothing to heal
	resumed   point // of a stopped client: when it was seen to run again; zero: not before the healing was recorded
}

// String is the name of the fault, in a sentence.
func (f *injection) String() string { return quote(f.name) }

// healing says when the fault was healed, for a tooltip or the table of faults.
func (f *injection) healing() string {
	switch {
	case f.single:
		return "nothing to heal"
	case f.heal == history.Infinity:
		return "not healed"
	}
	return "healed at " + format.Instant(f.heal)
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

// on reports whether a fault has that target, among others.
func (f *injection) on(target string) bool {
	return slices.Contains(strings.Split(f.target, "+"), target)
}

// effective reports whether a fault took effect by t and was still in force at from.
func (f *injection) effective(from, t time.Duration) bool {
	return len(f.effects) > 0 && f.inject <= t && max(f.heal, f.effectTime()) >= from
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
			injections = append(injections, injection{name: e.Name, class: e.Class, object: e.Object, verb: e.Verb,
				target: e.Target, inject: e.Time, heal: history.Infinity, detail: e.Detail, event: e.Index, healEvent: -1})
		}
		f := &injections[at]
		switch e.Phase {
		case history.TookEffect:
			f.effects = append(f.effects, e)
		case history.Healed:
			f.heal, f.healEvent, f.single = e.Time, e.Index, e.Detail == history.NothingToUndo
		}
		if f.target == "" {
			f.target = e.Target
		}
	}
	return injections, missed, notes
}

// findResumed finds when stopped clients were seen to run again. The healing of a pause is recorded after the client
// was resumed, and on a busy machine the client may have replied before that. Events that it sent before it was
// stopped may also be recorded late: the event after the longest silence is the first one after the pause.
func (r *Run) findResumed() {
	for f := range each(r.faults) {
		client, ok := cluster.ClientNumber(f.target)
		if !ok || f.class != history.FaultPauses || f.healEvent < 0 {
			continue
		}
		last, silence := f.effectTime(), time.Duration(0)
		for _, p := range append(r.sentBy(client, interval{last, f.heal}), eventAt(f.healEvent, f.heal)) {
			if p.Time-last > silence {
				silence, f.resumed = p.Time-last, p
			}
			last = p.Time
		}
	}
}

// sentBy are the replies and notices of a client inside an interval, in order of time.
func (r *Run) sentBy(client int, w interval) (all []point) {
	add := func(p history.Process, event int32, t time.Duration) {
		if p.Client(r.History.Clients) == client && w.from < t && t < w.until {
			all = append(all, eventAt(event, t))
		}
	}
	for s := range each(r.History.Spans) {
		add(s.Process, s.Ended, s.Return)
	}
	for n := range each(r.History.Notices) {
		add(n.Process, n.Index, n.Time)
	}
	slices.SortStableFunc(all, func(a, b point) int { return cmp.Compare(a.Time, b.Time) })
	return all
}

// ahead is how far a clock was set forward, as the fault observed it; "" if it was not.
func (f *injection) ahead() string {
	if len(f.effects) == 0 {
		return ""
	}
	_, rest, _ := strings.Cut(f.effects[0].Detail, " is ")
	by, _, ahead := strings.Cut(rest, " ahead of ")
	if !ahead {
		return ""
	}
	return by
}

// behind is how far a clock was set back, as the fault observed it; "" if it was not. When the fault is healed, the
// clock jumps ahead by that.
func (f *injection) behind() string {
	if len(f.effects) == 0 {
		return ""
	}
	_, rest, _ := strings.Cut(f.effects[0].Detail, " is ")
	by, _, behind := strings.Cut(rest, " behind ")
	if !behind || f.drifts() {
		return ""
	}
	return by
}

// state is what holds while a fault is in force: the first observation, except of a drift, whose first measurement is
// soon outdated; "" if nothing was observed.
func (f *injection) state() string {
	switch {
	case len(f.effects) == 0:
		return ""
	case f.drifts():
		if lost, slow := strings.CutPrefix(f.amount(), "-"); slow {
			return "loses " + lost + " every second"
		}
		return "gains " + f.amount() + " every second"
	}
	return f.effects[0].Detail
}

// amount is the magnitude of a fault as it was recorded with the injection; "" if it has none.
func (f *injection) amount() string {
	_, amount, _ := strings.Cut(f.detail, " Amount: ")
	return strings.TrimSuffix(amount, ".")
}

// healedText is what the end of a fault on a client means for that client.
func (f *injection) healedText() string {
	who := targetName(f.target)
	switch {
	case f.behind() != "":
		return fmt.Sprintf("the clock of %s is corrected, and jumps ahead", f.target)
	case f.class == history.FaultPauses:
		return who + " resumes"
	case f.cutsOff():
		return who + " is connected again"
	case f.does(history.FaultDelays, history.ObjectReplies):
		return "the replies to " + who + " that were held back are delivered"
	}
	return fmt.Sprintf("fault %s on %s is healed", quote(f.name), who)
}

// faultIn is the last fault on the client of a hold that was in force in [from, to]; nil if there is none.
func (r *Run) faultIn(h *hold, from, to time.Duration) *injection {
	target := cluster.ClientName(h.Client)
	return lastOf(r.faults, func(f *injection) bool { return f.on(target) && f.effective(from, to) })
}

// effectiveFaults are the faults that ok accepts and that were in effect at some time of an interval.
func (r *Run) effectiveFaults(from, until time.Duration, ok func(*injection) bool) []*injection {
	return allOf(r.faults, func(f *injection) bool { return ok(f) && f.effective(from, until) })
}

// effectOn is the last fault that ok accepts and that took effect on node, or on any if
// that is empty, in [from, to]; nil if there is none.
func (r *Run) effectOn(node string, from, to time.Duration, ok func(*injection) bool) *injection {
	return lastOf(r.faults, func(f *injection) bool {
		return ok(f) && (node == "" || f.on(node)) && len(f.effects) > 0 && f.effectTime() >= from &&
			f.inject <= to
	})
}

// clockAhead is a fault that set the clock of node forward between the request for a hold, which was granted at
// granted, and t, also by healing a clock that it had set back; nil if there is none.
func (r *Run) clockAhead(node string, asked, granted, t time.Duration) *injection {
	return firstOf(r.faults, func(f *injection) bool {
		corrected := f.behind() != "" && f.healEvent >= 0 && f.heal >= asked && f.heal <= t
		ahead := f.ahead() != "" && f.effective(asked, t) && f.heal >= granted
		return f.skews() && f.on(node) && (corrected || ahead)
	})
}

// promotion is the fault that made node a master before t; nil if none did.
func (r *Run) promotion(node string, t time.Duration) *injection {
	return firstOf(r.faults, func(f *injection) bool {
		return f.class == history.FaultPromotes && f.on(node) && f.inject <= t
	})
}

// nodes are the nodes among the targets of a fault.
func (f *injection) nodes(r *Run) []string {
	var all []string
	for _, n := range r.Manifest.Nodes {
		if f.on(n.Name) {
			all = append(all, n.Name)
		}
	}
	return all
}
