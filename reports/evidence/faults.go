package evidence

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

// Fault is an injected fault, or a stall that nobody planned.
type Fault struct {
	Name      string
	Class     string // its kind, with object; "": unknown, as in histories of earlier versions
	Object    string // the thing it acts on
	Verb      string // its effect on the target, as a predicate; "": unknown
	Target    string
	Inject    time.Duration
	Effects   []history.Fault // observed; empty: it tested nothing
	Heal      time.Duration   // history.Infinity if it was not healed
	Detail    string
	Event     int32 // index of the injection
	HealEvent int32 // index of the healing; -1 if it was not healed
	Single    bool  // over once it has taken effect: there was nothing to heal
	Unplanned bool  // a stall of a client or of the harness that no fault had caused
	Resumed   Point // of a stopped client: when it was seen to run again; zero: not before the healing was recorded
}

// String is the name of the fault, in a sentence.
func (f *Fault) String() string { return Quote(f.Name) }

// Began says when the fault was injected, for a tooltip.
func (f *Fault) Began() string {
	if f.Unplanned {
		return "began at " + format.Instant(f.Inject)
	}
	return "injected at " + format.Instant(f.Inject)
}

// Healing says when the fault was healed, for a tooltip or the table of faults.
func (f *Fault) Healing() string {
	switch {
	case f.Unplanned:
		return "over at " + format.Instant(f.Heal)
	case f.Single:
		return "nothing to heal"
	case f.Heal == history.Infinity:
		return "not healed"
	}
	return "healed at " + format.Instant(f.Heal)
}

// End is when the fault ends in a drawing that ends at limit.
func (f *Fault) End(limit time.Duration) time.Duration { return min(f.Heal, limit) }

// EffectTime is when the fault took effect, or else was injected.
func (f *Fault) EffectTime() time.Duration {
	if len(f.Effects) > 0 {
		return f.Effects[0].Time
	}
	return f.Inject
}

// On reports whether a fault has that target, among others.
func (f *Fault) On(target string) bool {
	return slices.Contains(strings.Split(f.Target, "+"), target)
}

// Effective reports whether a fault took effect by t and was still in force at from.
func (f *Fault) Effective(from, t time.Duration) bool {
	return len(f.Effects) > 0 && f.Inject <= t && max(f.Heal, f.EffectTime()) >= from
}

// injectionsOf joins the events of each injected fault, and adds the stalls, in the order of their beginnings. It also
// returns the faults that were never injected, and the observations that belong to no fault.
func injectionsOf(h *history.History) (injections []Fault, missed, notes []history.Fault) {
	byID := map[int]int{}
	var stalls []Fault
	for _, e := range h.Faults {
		at, ok := byID[e.ID]
		switch {
		case e.Phase == history.Missed:
			missed = append(missed, e)
			continue
		case e.Stalled():
			stalls = append(stalls, stallOf(e))
			continue
		case e.Phase == history.Noted || e.ID == 0:
			notes = append(notes, e)
			continue
		}
		if !ok {
			at = len(injections)
			byID[e.ID] = at
			injections = append(injections, Fault{Name: e.Name, Class: e.Class, Object: e.Object, Verb: e.Verb,
				Target: e.Target, Inject: e.Time, Heal: history.Infinity, Detail: e.Detail, Event: e.Index, HealEvent: -1})
		}
		f := &injections[at]
		switch e.Phase {
		case history.TookEffect:
			f.Effects = append(f.Effects, e)
		case history.Healed:
			f.Heal, f.HealEvent, f.Single = e.Time, e.Index, e.Detail == history.NothingToUndo
		}
		if f.Target == "" {
			f.Target = e.Target
		}
	}
	if len(stalls) > 0 {
		injections = append(injections, stalls...)
		slices.SortStableFunc(injections, func(a, b Fault) int { return cmp.Compare(a.Inject, b.Inject) })
	}
	return injections, missed, notes
}

// stallOf is the pause that the note of a stall reports: it was over when it was noted.
func stallOf(e history.Fault) Fault {
	began := e
	began.Time -= e.Lasted
	return Fault{Name: e.Name, Class: history.FaultPauses, Object: history.ObjectProcess, Verb: "did not run",
		Target: e.Target, Inject: began.Time, Effects: []history.Fault{began}, Heal: e.Time, Detail: e.Detail,
		Event: e.Index, HealEvent: e.Index, Unplanned: true}
}

// findResumed finds when stopped clients were seen to run again. The healing of a pause is recorded after the client
// was resumed, and on a busy machine the client may have replied before that. Events that it sent before it was
// stopped may also be recorded late: the event after the longest silence is the first one after the pause.
func (r *Run) findResumed() {
	for f := range Each(r.Faults) {
		client, ok := cluster.ClientNumber(f.Target)
		if !ok || f.Class != history.FaultPauses || f.HealEvent < 0 {
			continue
		}
		last, silence := f.EffectTime(), time.Duration(0)
		for _, p := range append(r.sentBy(client, Interval{last, f.Heal}), EventAt(f.HealEvent, f.Heal)) {
			if p.Time-last > silence {
				silence, f.Resumed = p.Time-last, p
			}
			last = p.Time
		}
	}
}

// sentBy are the replies and notices of a client inside an interval, in order of time.
func (r *Run) sentBy(client int, w Interval) (all []Point) {
	add := func(p history.Process, event int32, t time.Duration) {
		if p.Client(r.History.Clients) == client && w.From < t && t < w.Until {
			all = append(all, EventAt(event, t))
		}
	}
	for s := range Each(r.History.Spans) {
		add(s.Process, s.Ended, s.Return)
	}
	for n := range Each(r.History.Notices) {
		add(n.Process, n.Index, n.Time)
	}
	slices.SortStableFunc(all, func(a, b Point) int { return cmp.Compare(a.Time, b.Time) })
	return all
}

// ahead is how far a clock was set forward, as the fault observed it; "" if it was not.
func (f *Fault) ahead() string {
	if len(f.Effects) == 0 {
		return ""
	}
	_, rest, _ := strings.Cut(f.Effects[0].Detail, " is ")
	by, _, ahead := strings.Cut(rest, " ahead of ")
	if !ahead {
		return ""
	}
	return by
}

// Behind is how far a clock was set back, as the fault observed it; "" if it was not. When the fault is healed, the
// clock jumps ahead by that.
func (f *Fault) Behind() string {
	if len(f.Effects) == 0 {
		return ""
	}
	_, rest, _ := strings.Cut(f.Effects[0].Detail, " is ")
	by, _, behind := strings.Cut(rest, " behind ")
	if !behind || f.drifts() {
		return ""
	}
	return by
}

// State is the state while a fault is in force: the first observation, except of a drift, whose first measurement is
// soon outdated; "" if nothing was observed.
func (f *Fault) State() string {
	switch {
	case len(f.Effects) == 0:
		return ""
	case f.drifts():
		if lost, slow := strings.CutPrefix(f.amount(), "-"); slow {
			return "loses " + lost + " every second"
		}
		return "gains " + f.amount() + " every second"
	}
	return f.Effects[0].Detail
}

// amount is the magnitude of a fault as it was recorded with the injection; "" if it has none.
func (f *Fault) amount() string {
	_, amount, _ := strings.Cut(f.Detail, " Amount: ")
	return strings.TrimSuffix(amount, ".")
}

// HealedText describes the end of a fault on a client: the client resumed, for example.
func (f *Fault) HealedText() string {
	who := TargetName(f.Target)
	switch {
	case f.Behind() != "":
		return fmt.Sprintf("the clock of %s is corrected, and jumps ahead", f.Target)
	case f.Class == history.FaultPauses:
		return who + " resumes"
	case f.CutsOff():
		return who + " is connected again"
	case f.Does(history.FaultDelays, history.ObjectReplies):
		return "the replies to " + who + " that were held back are delivered"
	}
	return fmt.Sprintf("fault %s on %s is healed", Quote(f.Name), who)
}

// FaultIn is the last fault on the client of a hold that was in force in [from, to]; nil if there is none.
func (r *Run) FaultIn(h *Hold, from, to time.Duration) *Fault {
	target := cluster.ClientName(h.Client)
	return LastOf(r.Faults, func(f *Fault) bool { return f.On(target) && f.Effective(from, to) })
}

// EffectiveFaults are the faults that ok accepts and that were in effect at some time of an interval.
func (r *Run) EffectiveFaults(from, until time.Duration, ok func(*Fault) bool) []*Fault {
	return AllOf(r.Faults, func(f *Fault) bool { return ok(f) && f.Effective(from, until) })
}

// EffectOn is the last fault that ok accepts and that took effect on node, or on any if
// that is empty, in [from, to]; nil if there is none.
func (r *Run) EffectOn(node string, from, to time.Duration, ok func(*Fault) bool) *Fault {
	return LastOf(r.Faults, func(f *Fault) bool {
		return ok(f) && (node == "" || f.On(node)) && len(f.Effects) > 0 && f.EffectTime() >= from &&
			f.Inject <= to
	})
}

// ClockAhead is a fault that set the clock of node forward between the request for a hold, which was granted at
// granted, and t, also by healing a clock that it had set back; nil if there is none.
func (r *Run) ClockAhead(node string, asked, granted, t time.Duration) *Fault {
	return FirstOf(r.Faults, func(f *Fault) bool {
		corrected := f.Behind() != "" && f.HealEvent >= 0 && f.Heal >= asked && f.Heal <= t
		ahead := f.ahead() != "" && f.Effective(asked, t) && f.Heal >= granted
		return f.Skews() && f.On(node) && (corrected || ahead)
	})
}

// Promotion is the fault that made node a master before t; nil if none did.
func (r *Run) Promotion(node string, t time.Duration) *Fault {
	return FirstOf(r.Faults, func(f *Fault) bool {
		return f.Class == history.FaultPromotes && f.On(node) && f.Inject <= t
	})
}

// Nodes are the nodes among the targets of a fault.
func (f *Fault) Nodes(r *Run) []string {
	var all []string
	for _, n := range r.Manifest.Nodes {
		if f.On(n.Name) {
			all = append(all, n.Name)
		}
	}
	return all
}
