package evidence

import (
	"iter"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/kept"
)

// Holds that are taken from their owner by a renewal that does not compare the value of the key.

// OneServer reports whether the run has one server, or a server that was the master all the time, which has seen every
// renewal and every grant.
func (r *Run) OneServer() bool {
	masters := map[string]bool{}
	for _, s := range r.Samples {
		if s.Up && s.Role == "master" {
			masters[s.Node] = true
		}
	}
	return len(r.Manifest.Nodes) == 1 || len(masters) == 1
}

// Replaced reports whether honesty is violated because a hold was replaced by another one.
func (r *Run) Replaced(s *kept.Stay, victim, thief *Hold) bool {
	of := []string{r.OwnerName(victim.Owner), r.OwnerName(thief.Owner)}
	for res, v := range r.Violations() {
		if res.Property == checker.Honesty && v.Start == s.First.Time && slices.Equal(v.Owners, of) {
			return true
		}
	}
	return false
}

// Thefts are the values that replaced another one whose hold was in force, as the checkers found, each with that hold.
func (r *Run) Thefts() iter.Seq2[*kept.Stay, *Hold] {
	return func(yield func(*kept.Stay, *Hold) bool) {
		for _, s := range r.Kept.Replacing() {
			victim, thief := r.HoldOf(s.Replaced.Span), r.HoldOf(s.Span)
			if victim != nil && thief != nil && r.Replaced(s, victim, thief) && !yield(s, victim) {
				return
			}
		}
	}
}

// RenewedLate says that a client renewed the lock when it no longer had it, as seen at a time, and why it came late; f
// is the fault that the text names, or nil.
func (r *Run) RenewedLate(thief *Hold, seen time.Duration) (text Sentence, f *Fault) {
	text = Say("%s, granted it at %s, ", thief, thief.GrantedAt())
	if end := thief.ValidAt(seen); end != 0 && end < seen {
		if f = r.FaultIn(thief, thief.From, seen); f != nil {
			text.Add("%s, past the end of %s at %s, and ", f.During(), r.ValidityName(thief), r.Validity(thief))
		} else {
			text.Add("whose validity had ended, ")
		}
	}
	text.Add("renewed it without comparing the value of the key")
	return text, f
}

// RenewedOver says that a renewal succeeded although another owner had been granted the lock.
func (r *Run) RenewedOver(renewed *history.Span, other *Hold) Sentence {
	key, text := Quote(r.KeyName(renewed.Key)), Say("%s", r.Who(renewed.Process))
	if mine := r.LastHold(renewed.Owner, renewed.Key, renewed.Call); mine != nil {
		text.Add(", granted %s at %s, renewed it at %s without an error", key, mine.GrantedAt(), CallAt(renewed))
	} else {
		text.Add(" renewed %s at %s without an error for an owner that had never held it", key, CallAt(renewed))
	}
	if other.Client == r.ClientIn(renewed.Process) {
		text.Add(", although it had it for another owner, granted at %s", other.GrantedAt())
	} else {
		text.Add(", although %s had been granted it at %s", other, other.GrantedAt())
	}
	return text
}

// SetBack says why a release succeeded although another client had been granted the lock: the key had been set back for
// its owner by a renewal that succeeded, as a sample shows, or as samples show elsewhere in the run. The text is empty
// if nothing shows it; f is the fault that the text names, or nil.
func (r *Run) SetBack(rel *history.Span, mine, other *Hold) (text Sentence, steps []Step, f *Fault) {
	text = Say("%s, granted %s at %s, ", mine, Quote(r.KeyName(mine.Key)), mine.GrantedAt())
	if end := mine.ValidAt(other.From); end != 0 && end <= other.From {
		if f = r.FaultIn(mine, mine.From, rel.Call); f != nil {
			text.Add("%s, past the end of %s at %s, and ", f.During(), r.ValidityName(mine), r.Validity(mine))
		}
	}
	again := FirstOf(r.History.Spans, func(s *history.Span) bool {
		return s.Op == history.OpRenew && s.Outcome == history.OK && s.Owner == mine.Owner && s.Key == mine.Key &&
			s.Call >= other.From && s.Call <= rel.Call
	})
	back := FirstOf(r.Kept.Showing(mine.Span), func(s **kept.Stay) bool {
		return (*s).First.Sent >= other.From && (*s).First.Time <= rel.Return
	})
	switch {
	case again != nil && r.OneServer():
		text.Add("renewed it at %s without an error, although %s had been granted it at %s", CallAt(again), other,
			other.GrantedAt())
		steps = append(steps, r.StepAt(int(again.Invoked)), r.StepAt(int(again.Ended)))
	case back != nil:
		text.Add("renewed it without comparing the value of the key: %s had it for %s at %s, although %s had been granted "+
			"it at %s", (*back).Node, mine, (*back).First, other, other.GrantedAt())
		steps = append(steps, Step{Time: (*back).First.Time, Event: -1, Weight: 9,
			Text: (*back).Node + " has the key for " + mine.String() + " again"})
	default:
		s, thief, victim := r.firstReplaced()
		if s == nil {
			return Sentence{}, nil, nil
		}
		text.Add("released it at %s without an error, although %s had been granted it at %s: renewals set the key without "+
			"comparing its value, as that of %s did in place of %s by %s", CallAt(rel), other, other.GrantedAt(), thief, victim,
			s.First)
		return text, append(steps, r.StepAt(int(rel.Invoked))), f
	}
	text.Add("; it released it at %s", CallAt(rel))
	return text, append(steps, r.StepAt(int(rel.Invoked))), f
}

// firstReplaced is the first value that a renewal set in place of the value of another hold in force; nil: there is
// none.
func (r *Run) firstReplaced() (s *kept.Stay, thief, victim *Hold) {
	for s, victim := range r.Thefts() {
		if thief := r.HoldOf(s.Span); thief.From <= s.Replaced.Last.Sent {
			return s, thief, victim
		}
	}
	return nil, nil, nil
}

// StepAt is an event of the history as a step.
func (r *Run) StepAt(event int) Step {
	t, text, _ := r.Describe(event)
	return Step{Time: t, Event: event, Weight: 9, Text: text}
}
