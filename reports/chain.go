package reports

import (
	"fmt"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// maxSteps is how many moments a reader takes in at a glance.
const maxSteps = 6

// chain is cause and effect of an overlap, in the order of time.
func (p *pair) chain() []Moment {
	r, w := p.r, &p.r.seen
	a, b := clientName(p.a.Client), clientName(p.b.Client)
	steps := []Moment{
		{Time: p.a.From, Event: int(p.a.Granted), weight: 10, Text: p.granted(p.a, p.seenA)},
		{Time: p.b.From, Event: int(p.b.Granted), weight: 10, Text: p.granted(p.b, p.seenB) + p.stillHeld()},
	}
	steps = append(steps, p.faultSteps()...)
	if p.promoted > 0 && p.cause == byFailover {
		text := fmt.Sprintf("%s is seen as master for the first time", w.name(p.gb.node))
		if p.unspread {
			text += ", without the write of " + a
		}
		steps = append(steps, Moment{Time: p.promoted, Event: -1, weight: 8, Text: text})
	}
	if p.validTill > 0 && p.validTill <= p.b.From {
		steps = append(steps, Moment{Time: p.validTill, Event: -1, weight: 8,
			Text: fmt.Sprintf("the promise to %s ends; the client does not know", a)})
	}
	if p.stale != nil {
		steps = append(steps, Moment{Time: p.stale.Time, Event: int(p.stale.Index), weight: 9,
			Text: p.staleStep()})
	}
	end, last := p.a, a
	if p.b.to < p.a.to {
		end, last = p.b, b
	}
	text := fmt.Sprintf("%s %s: the overlap ends after %s", last, endingVerb(end.End), format.Duration(p.overlap()))
	if end.End == checker.StillHeld {
		text = fmt.Sprintf("the history ends; both still hold %s", quote(p.key))
	}
	steps = append(steps, Moment{Time: end.to, Event: int(end.Ended), weight: 7, Text: text})
	return number(r, steps)
}

func (p *pair) granted(h *hold, seen []sighting) string {
	text := fmt.Sprintf("%s is granted %s", clientName(h.Client), h.what(quote(p.key)))
	if h.Permits > 0 {
		text += " of " + quote(p.key)
	}
	if h == p.a && p.inferred {
		text += ", with " + p.r.seen.name(p.ga.node) + " the only master seen"
	} else if len(seen) > 0 {
		text += " by " + p.nodes(seen)
	}
	if h.Token > 0 {
		text += fmt.Sprintf(" with token %d", h.Token)
	}
	if until := h.validUntil(); until > 0 && h == p.a && p.cause != byStall {
		text += fmt.Sprintf(", and is promised it until %s", format.Instant(until))
	}
	return text
}

func (p *pair) stillHeld() string {
	if p.validTill > p.b.From {
		return fmt.Sprintf(": %s still holds %s, with %s of its promise left",
			clientName(p.a.Client), p.a.what("it"), format.Duration(p.validTill-p.b.From))
	}
	return fmt.Sprintf(": %s still believes that it holds %s", clientName(p.a.Client), p.a.what("it"))
}

func (p *pair) staleStep() string {
	t := p.stale
	text := fmt.Sprintf("%s writes to the guarded resource", clientName(p.a.Client))
	if t.Token > 0 && t.MaxSeen > t.Token {
		text += fmt.Sprintf(" with token %d although %d was seen", t.Token, t.MaxSeen)
	}
	if t.Token > 0 && t.MaxSeen <= t.Token {
		text += fmt.Sprintf(" with token %d", t.Token)
	}
	if !t.Accepted {
		return text + ", and is refused"
	}
	if t.Found != t.Read {
		return text + fmt.Sprintf(": it had read %d and overwrites %d", t.Read, t.Found)
	}
	return text
}

// faultSteps are the faults that were at work between the first request and the second grant.
func (p *pair) faultSteps() []Moment {
	var steps []Moment
	for i := range p.r.faults {
		f := &p.r.faults[i]
		if f.inject > p.b.From || f.heal < p.a.From {
			continue
		}
		weight := 6
		if f == p.hit {
			weight = 10
		} else if len(f.bites) > 0 {
			weight = 7
		}
		steps = append(steps, Moment{Time: f.inject, Event: int(f.event), weight: weight, Text: faultText(f)})
		if f == p.hit && f.heal <= p.a.to && p.cause == byStall {
			steps = append(steps, Moment{Time: f.heal, Event: -1, weight: 5,
				Text: targetName(f.target) + " runs again"})
		}
	}
	return steps
}

func faultText(f *faultLife) string {
	var text string
	switch {
	case f.target == "":
		text = fmt.Sprintf("fault %s sets in", quote(f.name))
	default:
		text = fmt.Sprintf("%s %s", targetName(f.target), hitVerb(f.name))
	}
	if len(f.bites) == 0 {
		return text + " (no effect was observed)"
	}
	if d := f.bites[0].Detail; d != "" {
		text += ": " + d
	}
	return text
}

func endingVerb(end checker.HoldEnd) string {
	switch end {
	case checker.Released, checker.ReleaseUnknown:
		return "releases"
	case checker.ReleaseRefused:
		return "tries to release what is not its own any more"
	case checker.RenewalRefused:
		return "cannot renew its lease"
	case checker.LossReported:
		return "learns that it lost the lock"
	case checker.Crashed:
		return "crashes"
	}
	return "still holds it"
}

// number keeps the weightiest moments, puts them in order and numbers them.
func number(r *Run, steps []Moment) []Moment {
	sort.SliceStable(steps, func(i, k int) bool { return steps[i].weight > steps[k].weight })
	if len(steps) > maxSteps {
		steps = steps[:maxSteps]
	}
	sort.SliceStable(steps, func(i, k int) bool { return steps[i].Time < steps[k].Time })
	for i := range steps {
		steps[i].N = i + 1
		steps[i].Time = min(steps[i].Time, max(r.History.End, 0))
	}
	return steps
}

// chainOfFaults is the chain of a run in which nothing went wrong: what was done to it.
func chainOfFaults(r *Run) []Moment {
	var steps []Moment
	for i := range r.faults {
		f := &r.faults[i]
		weight := 1
		if len(f.bites) > 0 {
			weight = 2
		}
		steps = append(steps, Moment{Time: f.inject, Event: int(f.event), weight: weight, Text: faultText(f)})
		if next := r.nextGrant(f.hit()); next != nil && len(r.faults) <= maxSteps/2 {
			steps = append(steps, Moment{Time: next.From, Event: int(next.Granted), weight: 1,
				Text: fmt.Sprintf("%s is granted %s, %s after it",
					clientName(next.Client), quote(r.keyName(next.Key)), format.Duration(next.From-f.hit()))})
		}
	}
	return number(r, steps)
}

// nextGrant is the first hold granted after t; nil if none was.
func (r *Run) nextGrant(t time.Duration) *hold {
	i := sort.Search(len(r.holds), func(i int) bool { return r.holds[i].From > t })
	if i == len(r.holds) {
		return nil
	}
	return &r.holds[i]
}

// chainOfEvents is the chain of a violation that is not about two holds: its
// proof, and the faults that were at work.
func chainOfEvents(r *Run, v *checker.Violation) []Moment {
	var steps []Moment
	for _, e := range v.Events {
		if t, text, ok := r.describe(e); ok {
			steps = append(steps, Moment{Time: t, Event: e, weight: 10, Text: text})
		}
	}
	from, to := v.Start, v.End
	for _, proof := range steps {
		from, to = min(from, proof.Time), max(to, proof.Time)
	}
	for i := range r.faults {
		f := &r.faults[i]
		if f.inject <= v.End && f.heal >= v.Start-5*time.Second {
			weight := 5 + min(len(f.bites), 1)
			if hit := f.hit(); from <= hit && hit <= to {
				weight += 2 // what struck in between explains more than what came long before
			}
			steps = append(steps, Moment{Time: f.inject, Event: int(f.event), weight: weight, Text: faultText(f)})
		}
	}
	return number(r, steps)
}

// describe says what the event with that index is; false if nothing refers to it.
func (r *Run) describe(index int) (time.Duration, string, bool) {
	for i := range r.History.Touches {
		if t := &r.History.Touches[i]; int(t.Index) == index {
			return t.Time, r.touchText(t), true
		}
	}
	for i := range r.History.Spans {
		s := &r.History.Spans[i]
		who := clientName(s.Process.Client(r.clients()))
		switch index {
		case int(s.Invoked):
			return s.Call, fmt.Sprintf("%s asks to %s %s", who, opName(s.Op), quote(r.keyName(s.Key))), true
		case int(s.Ended):
			t := s.Return
			if t == history.Infinity {
				t = s.Call
			}
			return t, fmt.Sprintf("%s: %s of %s %s", who, opName(s.Op), quote(r.keyName(s.Key)), outcomeText(s)), true
		}
	}
	for i := range r.History.Notices {
		if n := &r.History.Notices[i]; int(n.Index) == index {
			return n.Time, fmt.Sprintf("%s: %s of %s", clientName(n.Process.Client(r.clients())), n.F,
				quote(r.keyName(n.Key))), true
		}
	}
	for i := range r.History.Faults {
		if f := &r.History.Faults[i]; int(f.Index) == index {
			return f.Time, fmt.Sprintf("fault %s on %s: %s", quote(f.Name), targetName(f.Target), f.Phase), true
		}
	}
	return 0, "", false
}

func (r *Run) touchText(t *history.Touched) string {
	text := fmt.Sprintf("%s writes under %s", clientName(t.Process.Client(r.clients())), quote(r.keyName(t.Key)))
	if t.Token > 0 {
		text += fmt.Sprintf(" with token %d (greatest seen: %d)", t.Token, t.MaxSeen)
	}
	if !t.Accepted {
		return text + "; refused"
	}
	if t.Read != t.Found {
		text += fmt.Sprintf("; it had read %d and found %d: a lost update", t.Read, t.Found)
	}
	return text
}

func outcomeText(s *history.Span) string {
	switch s.Outcome {
	case history.OK:
		if s.Token > 0 {
			return fmt.Sprintf("done, token %d", s.Token)
		}
		return "done"
	case history.Fail:
		return "did not happen"
	}
	return "of unknown outcome"
}

// opName is an operation as the history writes it.
func opName(op history.Op) string {
	names := [...]string{"operation", "acquire", "try", "release", "renew", "work", "touch"}
	if int(op) < len(names) {
		return names[op]
	}
	return names[0]
}
