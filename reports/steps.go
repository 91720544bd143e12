package reports

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
)

// maxSteps is how many steps a reader takes in at a glance. A story has more only if the headline names more.
const maxSteps = 6

// steps are cause and effect of an overlap, in order of time.
func (p *pair) steps(c *cause, headline sentence) []storyStep {
	a, b := clientName(p.a.Client), clientName(p.b.Client)
	steps := []storyStep{
		{Time: p.a.From, Event: int(p.a.Granted), weight: 10, Text: p.grantStep(p.a)},
		{Time: p.b.From, Event: int(p.b.Granted), weight: 10, Text: p.grantStep(p.b) + p.stillHeld()},
	}
	steps = append(append(steps, c.steps...), p.faultSteps(c)...)
	if p.promoted != nil && p.granterA != p.granterB {
		text := fmt.Sprintf("%s is first seen as %s", p.r.witness.name(p.granterB), p.r.masterWord())
		if p.unreplicated {
			text += ", without the grant of " + a
		}
		steps = append(steps, storyStep{Time: p.promoted.Time, Event: -1, weight: 8, Text: text})
	}
	if p.validUntil > 0 && p.validUntil <= p.b.From {
		steps = append(steps, storyStep{Time: p.validUntil, Event: -1, weight: 8,
			Text: fmt.Sprintf("%s; %s does not notice", p.r.endOfValidity(p.a), a)})
	}
	if p.stale != nil {
		steps = append(steps, storyStep{Time: p.stale.Time, Event: int(p.stale.Index), weight: 9, Text: p.staleStep()})
	}
	end, last := p.a, a
	if p.b.to < p.a.to {
		end, last = p.b, b
	}
	verb := endingVerb(end.End)
	if end.End == checker.Crashed {
		verb = p.r.crashVerb(end.to)
	}
	text := fmt.Sprintf("%s %s; the overlap ends after %s", last, verb, format.Duration(p.overlap()))
	if end.End == checker.StillHeld {
		text = fmt.Sprintf("the history ends; both still hold %s", quote(p.key))
	}
	steps = append(steps, storyStep{Time: end.to, Event: int(end.Ended), weight: 7, Text: text})
	return selectSteps(p.r, p.r.withNamed(steps, headline.proofs))
}

func (p *pair) grantStep(h *hold) string {
	text := fmt.Sprintf("%s is granted %s", clientName(h.Client), h.what(quote(p.key)))
	if h.Permits > 0 {
		text += " of " + quote(p.key)
	}
	if h == p.a && p.inferred {
		text += ", with " + p.r.witness.name(p.granterA) + " the only " + p.r.masterWord() + " seen"
	} else {
		text += p.knownBy(h).text
	}
	if h.Token > 0 {
		text += fmt.Sprintf(" with token %d", h.Token)
	}
	if until := h.validUntil(); until > 0 && h == p.a && !p.outlived() {
		text += ", valid until " + format.Instant(until)
	}
	return text
}

// withNamed marks the steps about what the headline names, by the proofs of its instants, and adds those that are
// missing: operations, notices, writes and ends of validities. Faults and samples have their own steps.
func (r *Run) withNamed(steps []storyStep, proofs []proof) []storyStep {
	for _, p := range proofs {
		if p.Kind != proofInstant || p.From[0].Event < 0 {
			continue
		}
		at := p.From[0]
		same := r.sameOperation(at.Event)
		about := func(s storyStep) bool { return s.Event >= 0 && slices.Contains(same, s.Event) }
		if at.Until {
			about = func(s storyStep) bool { return s.Event < 0 && s.Time == at.Time }
		}
		if i := slices.IndexFunc(steps, about); i >= 0 {
			steps[i].named = true
			continue
		}
		if at.Until {
			i := slices.IndexFunc(r.holds, func(h hold) bool {
				return h.validUntil() == at.Time && r.validity(&h) == at
			})
			if i >= 0 {
				steps = append(steps, storyStep{Time: at.Time, Event: -1, Text: r.endOfValidity(&r.holds[i]), named: true})
			}
		} else if t, text, ok := r.describe(at.Event); ok && same != nil {
			if i := slices.IndexFunc(r.faults, func(f injection) bool { return f.resumed == at }); i >= 0 {
				text = r.faults[i].healedText()
			}
			steps = append(steps, storyStep{Time: t, Event: at.Event, Text: text, named: true})
		}
	}
	return steps
}

func (p *pair) stillHeld() string {
	if p.validUntil > p.b.From {
		return fmt.Sprintf(" while %s still holds %s, valid for another %s",
			clientName(p.a.Client), p.a.what("it"), format.Duration(p.validUntil-p.b.From))
	}
	return fmt.Sprintf(" while %s still believes that it holds %s", clientName(p.a.Client), p.a.what("it"))
}

func (p *pair) staleStep() string {
	t := p.stale
	text := fmt.Sprintf("%s writes to the guarded resource", clientName(p.a.Client))
	if t.Token > 0 {
		text += fmt.Sprintf(" with token %d", t.Token)
	}
	if t.Token > 0 && t.MaxSeen > t.Token {
		text += fmt.Sprintf(" after token %d was seen", t.MaxSeen)
	}
	if !t.Accepted {
		return text + "; the resource rejects it"
	}
	if t.Found != t.Read {
		return text + fmt.Sprintf(": it had read %d and overwrites %d", t.Read, t.Found)
	}
	return text
}

// faultSteps are the faults in force between the first request and the second
// grant, at the time of their effect, and the end of a pause that the cause names.
func (p *pair) faultSteps(c *cause) []storyStep {
	var steps []storyStep
	for f := range each(p.r.faults) {
		named := slices.Contains(c.faults, f)
		if f.inject > p.b.From || f.heal < p.a.From && !named && f.effectTime() < p.a.Asked {
			continue
		}
		steps = append(steps, f.step(named, 6))
		if over := f.healed(); named && (isClient(f.target) || f.behind() != "") && over.Time <= p.a.to && !f.single {
			steps = append(steps, storyStep{Time: over.Time, Event: over.Event, weight: 5, Text: f.healedText()})
		}
	}
	return steps
}

// step is a fault at the time of its effect; of weight 10 if the cause names it.
func (f *injection) step(named bool, weight int) storyStep {
	at := f.took()
	switch {
	case named:
		weight = 10
	case len(f.effects) > 0:
		weight++
	}
	return storyStep{Time: at.Time, Event: at.Event, weight: weight, Text: faultText(f)}
}

func faultText(f *injection) string {
	text := fmt.Sprintf("fault %s is injected", quote(f.name))
	many := strings.Split(f.target, "+")
	if f.target != "" {
		text = subject(f.target) + " " + f.predicate(len(many))
	}
	if len(f.effects) == 0 {
		return text + " (no effect observed)"
	}
	d := f.effects[0].Detail
	switch {
	case d == "":
		return text
	case f.skews():
		return d // a sentence with its own subject
	case f.startsAgain() && f.healEvent >= 0:
		return fmt.Sprintf("%s and %s at %s", text, f.back(len(many)), format.Instant(f.heal))
	}
	return text + ": " + d
}

func endingVerb(end checker.HoldEnd) string {
	switch end {
	case checker.Released:
		return "releases it"
	case checker.ReleaseUnknown:
		return "asks to release it, with an unknown outcome"
	case checker.ReleaseRefused:
		return "asks to release it, and is refused"
	case checker.RenewalRefused:
		return "asks to renew it, and is refused"
	case checker.LossReported:
		return "learns that it lost the lock"
	}
	return "still holds it"
}

// selectSteps keeps the steps that the headline names and the heaviest of the others, and numbers them in order of
// time.
func selectSteps(r *Run, steps []storyStep) []storyStep {
	slices.SortStableFunc(steps, func(a, b storyStep) int { return b.weight - a.weight })
	room := maxSteps
	for _, s := range steps {
		if s.named {
			room--
		}
	}
	steps = slices.DeleteFunc(steps, func(s storyStep) bool {
		if s.named {
			return false
		}
		room--
		return room < 0
	})
	slices.SortStableFunc(steps, func(a, b storyStep) int { return cmp.Compare(a.Time, b.Time) })
	for i := range steps {
		steps[i].N = i + 1
		steps[i].Time = min(steps[i].Time, max(r.History.End, 0))
	}
	return steps
}

// faultSteps are the faults of a run without violation, and the grants after them.
func faultSteps(r *Run) []storyStep {
	var steps []storyStep
	for i := range r.faults {
		f := &r.faults[i]
		steps = append(steps, f.step(false, 1))
		next := r.nextGrant(f.effectTime())
		if i+1 < len(r.faults) && next == r.nextGrant(r.faults[i+1].effectTime()) {
			continue // it is the next grant after a later fault
		}
		if next != nil && len(r.faults) <= maxSteps/2 {
			steps = append(steps, storyStep{Time: next.From, Event: int(next.Granted), weight: 1,
				Text: fmt.Sprintf("%s is granted %s, %s after the fault", clientName(next.Client),
					quote(r.keyName(next.Key)), format.Duration(next.From-f.effectTime()))})
		}
	}
	return selectSteps(r, steps)
}

// nextGrant is the first hold granted after t; nil if there is none.
func (r *Run) nextGrant(t time.Duration) *hold {
	i := sort.Search(len(r.holds), func(i int) bool { return r.holds[i].From > t })
	if i == len(r.holds) {
		return nil
	}
	return &r.holds[i]
}

// eventSteps are the events that prove a violation of another kind than an
// overlap, and the faults around them.
func eventSteps(r *Run, v *checker.Violation, c *cause) []storyStep {
	var steps []storyStep
	for _, e := range v.Events {
		known := slices.ContainsFunc(c.steps, func(s storyStep) bool { return s.Event == e })
		if known || c.of != nil && r.byOther(e, *c.of) {
			continue
		}
		if t, text, ok := r.describe(e); ok {
			steps = append(steps, storyStep{Time: t, Event: e, weight: 10, Text: text})
		}
	}
	steps = append(steps, c.steps...)
	from, to := v.Start, v.End
	for _, event := range steps {
		from, to = min(from, event.Time), max(to, event.Time)
	}
	for f := range each(r.faults) {
		named := slices.Contains(c.faults, f)
		if !named && (f.inject > v.End || f.heal < v.Start-5*time.Second) {
			continue
		}
		weight := 5
		if t := f.effectTime(); from <= t && t <= to {
			weight += 2 // a fault between the events explains more than an earlier one
		}
		steps = append(steps, f.step(named, weight))
	}
	return selectSteps(r, r.withNamed(steps, c.proofs))
}
