// Package cause finds the cause of a violation: the mechanism by which the lock broke, the faults that are part of it,
// and advice against it. A mechanism is a row of a table; it is recognized by the history, the samples and the class
// of the faults, never by the name of a fault or a scenario.
//
// Read [Find] first.
package cause

import (
	"cmp"
	"slices"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/reports/advice"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/overlap"
)

// mechanism is a row of the table of causes: one way in which a lock breaks, which the history, the samples and the
// faults show.
type mechanism struct {
	Name string // in JSON, for programs; package advice has the advice against it
	find func(*inquiry) *Cause
}

// Cause is the cause of a violation, in words and with its evidence.
type Cause struct {
	mechanism
	evidence.Sentence                   // of one hold: the headline; of two holds: the headline after its colon
	Faults            []*evidence.Fault // that it names, the most important first
	Steps             []evidence.Step   // that explain it, besides the evidence of the violation and the faults
	advisedAs         string            // the name of the advice; empty: the mechanism's

	Of       *int // the only client of the story: others' actions are not evidence; nil: all clients
	indirect bool // the violation follows from an earlier one
	unsure   bool // no samples prove its claims about servers
}

// because is a cause in words, as [evidence.Say] formats it.
func because(text string, args ...any) *Cause { return &Cause{Sentence: evidence.Say(text, args...)} }

// blame is a cause that begins with a fault, in words.
func blame(f *evidence.Fault, text string, args ...any) *Cause {
	return new(Cause).blame(f, text, args...)
}

// blame adds a fault, and words about it.
func (c *Cause) blame(f *evidence.Fault, text string, args ...any) *Cause {
	c.Faults = append(c.Faults, f)
	c.Add(text, args...)
	return c
}

// advised replaces the advice against the mechanism of a cause, if there is one.
func (c *Cause) advised(as string) *Cause {
	if c != nil {
		c.advisedAs = as
	}
	return c
}

// explain adds steps.
func (c *Cause) explain(steps ...evidence.Step) *Cause {
	c.Steps = append(c.Steps, steps...)
	return c
}

// inquiry is a violation in search of its cause.
type inquiry struct {
	r        *evidence.Run
	v        *checker.Violation
	property checker.Property
	p        *overlap.Pair // nil: the violation is not about two holds
}

// Find finds the cause of a violation.
func Find(r *evidence.Run, v *checker.Violation, property checker.Property, p *overlap.Pair) *Cause {
	for _, m := range mechanisms() {
		if c := m.find(&inquiry{r: r, v: v, property: property, p: p}); c != nil {
			c.mechanism = m
			tables := advice.OfTables + m.Name
			if r.Manifest.Topology.Database() && advice.Against(tables) != nil {
				c.advisedAs = tables
			}
			return c
		}
	}
	return nil
}

// about reports whether the violation is about that key.
func (q *inquiry) about(key int32) bool { return q.r.KeyName(key) == q.v.Key }

// cites reports whether one of these events is evidence of the violation.
func (q *inquiry) cites(events ...int32) bool {
	for _, e := range events {
		if slices.Contains(q.v.Events, int(e)) {
			return true
		}
	}
	return false
}

// Advice lists ways to prevent the violation, the best first.
func (c *Cause) Advice() []evidence.Advice { return advice.Against(cmp.Or(c.advisedAs, c.Name)) }

// Known reports whether name names a cause that explains something.
func Known(name string) bool { return name != "" && name != faultBetween && name != Unknown }

// Explains is how much of a violation a cause explains: 0 if no mechanism fits.
func (c *Cause) Explains() int {
	switch {
	case !Known(c.Name), len(c.Faults) == 0 && c.unsure:
		return 0
	case len(c.Faults) == 0, c.indirect:
		return 1
	}
	return ExplainsByFault
}

const ExplainsByFault = 2
