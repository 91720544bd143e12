package story

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports/cause"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/overlap"
)

// maxSteps is how many steps a reader takes in at a glance. A story has more only if the headline names more.
const maxSteps = 6

// stepsOfPair are cause and effect of an overlap, in order of time.
func stepsOfPair(p *overlap.Pair, c *cause.Cause, headline evidence.Sentence) []evidence.Step {
	a, b := evidence.ClientName(p.A.Client), evidence.ClientName(p.B.Client)
	steps := []evidence.Step{
		{Time: p.A.From, Event: int(p.A.Granted), Weight: 10, Text: grantStep(p, p.A, "")},
		{Time: p.B.From, Event: int(p.B.Granted), Weight: 10, Text: grantStep(p, p.B, stillHeld(p))},
	}
	steps = append(append(steps, c.Steps...), stepsOfFaults(p, c)...)
	if p.Promoted != nil && p.ByA.Node != p.ByB.Node {
		text := fmt.Sprintf("%s is first seen as %s", p.R.Witness.Name(p.ByB.Node), p.R.MasterWord())
		if p.Unreplicated {
			text += ", without the grant of " + a
		}
		steps = append(steps, evidence.Step{Time: p.Promoted.Time, Event: -1, Weight: 8, Text: text})
	}
	if p.ValidUntil > 0 && p.ValidUntil <= p.B.From {
		steps = append(steps, evidence.Step{Time: p.ValidUntil, Event: -1, Weight: 8,
			Text: fmt.Sprintf("%s; %s does not notice", p.EndOfValidity(), a)})
	}
	if p.Stale != nil {
		steps = append(steps, evidence.Step{Time: p.Stale.Time, Event: int(p.Stale.Index), Weight: 9, Text: staleStep(p)})
	}
	end, last := p.A, a
	if p.B.To < p.A.To {
		end, last = p.B, b
	}
	verb := endingVerb(end.End)
	if end.End == checker.Crashed {
		verb = p.R.CrashVerb(end.To)
	}
	text := fmt.Sprintf("%s %s; the overlap ends after %s", last, verb, format.Duration(p.Overlap()))
	if end.End == checker.StillHeld {
		text = fmt.Sprintf("the history ends; both still hold %s", evidence.Quote(p.Key))
	}
	steps = append(steps, evidence.Step{Time: end.To, Event: int(end.Ended), Weight: 7, Text: text})
	return selectSteps(p.R, withNamed(p.R, steps, headline.Proofs))
}

func grantStep(p *overlap.Pair, h *evidence.Hold, rest string) string {
	if until := h.DrawnValidity(); until > 0 && h == p.A && !p.Outlived() {
		rest = ", valid until " + format.Instant(until) + rest
	}
	if h.Token > 0 {
		rest = fmt.Sprintf(" with token %d", h.Token) + rest
	}
	return p.GrantStep(h, rest)
}

// withNamed marks the steps about events in the headline, by the proofs of its instants, and adds missing ones:
// operations, notices, writes and ends of validities. Faults and samples have their own steps.
func withNamed(r *evidence.Run, steps []evidence.Step, proofs []evidence.Proof) []evidence.Step {
	for _, p := range proofs {
		if p.Kind != evidence.ProofInstant || p.From[0].Event < 0 {
			continue
		}
		at := p.From[0]
		same := r.SameOperation(at.Event)
		about := func(s evidence.Step) bool { return s.Event >= 0 && slices.Contains(same, s.Event) }
		if at.Until {
			about = func(s evidence.Step) bool { return s.Event < 0 && s.Time == at.Time }
		}
		if i := slices.IndexFunc(steps, about); i >= 0 {
			steps[i].Named = true
			continue
		}
		if at.Until {
			i := slices.IndexFunc(r.Holds, func(h evidence.Hold) bool {
				return h.ValidUntil() == at.Time && r.Validity(&h) == at
			})
			if i >= 0 {
				steps = append(steps, evidence.Step{Time: at.Time, Event: -1, Text: r.EndOfValidity(&r.Holds[i]), Named: true})
			}
		} else if t, text, ok := r.Describe(at.Event); ok && same != nil {
			if i := slices.IndexFunc(r.Faults, func(f evidence.Fault) bool { return f.Resumed == at }); i >= 0 {
				text = r.Faults[i].HealedText()
			}
			steps = append(steps, evidence.Step{Time: t, Event: at.Event, Text: text, Named: true})
		}
	}
	return steps
}

func stillHeld(p *overlap.Pair) string {
	if p.ValidUntil > p.B.From {
		return fmt.Sprintf(" while %s still holds %s, valid for another %s",
			evidence.ClientName(p.A.Client), p.A.Object("it"), format.Duration(p.ValidUntil-p.B.From))
	}
	return fmt.Sprintf(" while %s still believes that it holds %s", evidence.ClientName(p.A.Client), p.A.Object("it"))
}

func staleStep(p *overlap.Pair) string {
	t := p.Stale
	text := fmt.Sprintf("%s writes to the guarded resource", evidence.ClientName(p.A.Client))
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

// stepsOfFaults are the faults in force between the first request and the second
// grant, at the time of their effect, and the end of a pause that the cause names.
func stepsOfFaults(p *overlap.Pair, c *cause.Cause) []evidence.Step {
	var steps []evidence.Step
	for f := range evidence.Each(p.R.Faults) {
		named := slices.Contains(c.Faults, f)
		if f.Inject > p.B.From || f.Heal < p.A.From && !named && f.EffectTime() < p.A.Asked {
			continue
		}
		steps = append(steps, step(f, named, 6))
		if over := f.Healed(); named && (evidence.IsClient(f.Target) || f.Behind() != "") && over.Time <= p.A.To &&
			!f.Single {
			steps = append(steps, evidence.Step{Time: over.Time, Event: over.Event, Weight: 5, Text: f.HealedText()})
		}
	}
	return steps
}

// step is a fault at the time of its effect; of weight 10 if the cause names it.
func step(f *evidence.Fault, named bool, weight int) evidence.Step {
	at := f.Took()
	switch {
	case named:
		weight = 10
	case len(f.Effects) > 0:
		weight++
	}
	return evidence.Step{Time: at.Time, Event: at.Event, Weight: weight, Text: faultText(f)}
}

func faultText(f *evidence.Fault) string {
	text := fmt.Sprintf("fault %s is injected", evidence.Quote(f.Name))
	if f.Target != "" {
		text = f.Clause()
	}
	if len(f.Effects) == 0 {
		return text + " (no effect observed)"
	}
	d := f.Effects[0].Detail
	switch {
	case d == "":
		return text
	case f.Skews():
		return d // a sentence with its own subject
	case f.StartsAgain() && f.HealEvent >= 0:
		return fmt.Sprintf("%s and %s at %s", text, f.Back(), format.Instant(f.Heal))
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
	case checker.AcquiredAgain:
		return "acquires it again, perhaps after its lease"
	case checker.LossReported:
		return "learns that it lost the lock"
	}
	return "still holds it"
}

// selectSteps keeps the steps that the headline names and the heaviest of the others, and numbers them in order of
// time.
func selectSteps(r *evidence.Run, steps []evidence.Step) []evidence.Step {
	slices.SortStableFunc(steps, func(a, b evidence.Step) int { return b.Weight - a.Weight })
	room := maxSteps
	for _, s := range steps {
		if s.Named {
			room--
		}
	}
	steps = slices.DeleteFunc(steps, func(s evidence.Step) bool {
		if s.Named {
			return false
		}
		room--
		return room < 0
	})
	slices.SortStableFunc(steps, func(a, b evidence.Step) int { return cmp.Compare(a.Time, b.Time) })
	for i := range steps {
		steps[i].N = i + 1
		steps[i].Time = min(steps[i].Time, max(r.History.End, 0))
	}
	return steps
}

// stepsOfFaults are the faults of a run without violation, and the grants after them.
func faultSteps(r *evidence.Run) []evidence.Step {
	var steps []evidence.Step
	for i := range r.Faults {
		f := &r.Faults[i]
		steps = append(steps, step(f, false, 1))
		next := nextGrant(r, f.EffectTime())
		if i+1 < len(r.Faults) && next == nextGrant(r, r.Faults[i+1].EffectTime()) {
			continue // it is the next grant after a later fault
		}
		if next != nil && len(r.Faults) <= maxSteps/2 {
			steps = append(steps, evidence.Step{Time: next.From, Event: int(next.Granted), Weight: 1,
				Text: fmt.Sprintf("%s is granted %s, %s after the %s", evidence.ClientName(next.Client),
					evidence.Quote(r.KeyName(next.Key)), format.Duration(next.From-f.EffectTime()), kind(f))})
		}
	}
	return selectSteps(r, steps)
}

// kind is the kind of f, in a sentence.
func kind(f *evidence.Fault) string {
	if f.Unplanned {
		return "stall"
	}
	return "fault"
}

// nextGrant is the first hold granted after t; nil if there is none.
func nextGrant(r *evidence.Run, t time.Duration) *evidence.Hold {
	i := sort.Search(len(r.Holds), func(i int) bool { return r.Holds[i].From > t })
	if i == len(r.Holds) {
		return nil
	}
	return &r.Holds[i]
}

// eventSteps are the events that prove a violation of another kind than an
// overlap, and the faults around them.
func eventSteps(r *evidence.Run, v *checker.Violation, c *cause.Cause) []evidence.Step {
	var steps []evidence.Step
	for _, e := range v.Events {
		known := slices.ContainsFunc(c.Steps, func(s evidence.Step) bool { return s.Event == e })
		if known || c.Of != nil && r.ByOther(e, *c.Of) {
			continue
		}
		if t, text, ok := r.Describe(e); ok {
			steps = append(steps, evidence.Step{Time: t, Event: e, Weight: 10, Text: text})
		}
	}
	steps = append(steps, c.Steps...)
	from, to := v.Start, v.End
	for _, event := range steps {
		from, to = min(from, event.Time), max(to, event.Time)
	}
	for f := range evidence.Each(r.Faults) {
		named := slices.Contains(c.Faults, f)
		if !named && (f.Inject > v.End || f.Heal < v.Start-5*time.Second) {
			continue
		}
		weight := 5
		if t := f.EffectTime(); from <= t && t <= to {
			weight += 2 // a fault between the events explains more than an earlier one
		}
		steps = append(steps, step(f, named, weight))
	}
	return selectSteps(r, withNamed(r, steps, c.Proofs))
}
