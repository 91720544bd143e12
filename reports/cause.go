package reports

import (
	"slices"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
)

// mechanism is a row of the table of causes: one way in which a lock breaks. It is
// recognized by the history, the samples and the faults that were injected, never
// by the name of the scenario.
type mechanism struct {
	name   string // in JSON, for programs
	find   func(*inquiry) *cause
	advice []adviceItem
}

// cause is what broke the lock.
type cause struct {
	mechanism
	sentence              // of one hold: the headline; of two holds: what follows the colon of the headline
	faults   []*injection // that it names, the most important first
	steps    []storyStep  // that explain it, besides the evidence of the violation and the faults
	rows     []adviceItem // instead of those of the mechanism; nil: its own

	of       *int // the only client that the story is about: what others did is not evidence; nil: it is about all
	indirect bool // the violation follows from an earlier one
}

// because is a cause in words, as say formats them.
func because(text string, args ...any) *cause { return &cause{sentence: say(text, args...)} }

// blame is a cause that begins with a fault, in words.
func blame(f *injection, text string, args ...any) *cause { return new(cause).blame(f, text, args...) }

// blame adds a fault, and words about it.
func (c *cause) blame(f *injection, text string, args ...any) *cause {
	c.faults = append(c.faults, f)
	c.add(text, args...)
	return c
}

// explain adds steps.
func (c *cause) explain(steps ...storyStep) *cause {
	c.steps = append(c.steps, steps...)
	return c
}

// inquiry is a violation in search of its cause.
type inquiry struct {
	r        *Run
	v        *checker.Violation
	property checker.Property
	p        *pair // nil: the violation is not about two holds
}

// findCause finds the cause of a violation.
func findCause(r *Run, v *checker.Violation, property checker.Property, p *pair) *cause {
	for _, m := range mechanisms() {
		if c := m.find(&inquiry{r: r, v: v, property: property, p: p}); c != nil {
			if c.mechanism = m; c.rows != nil {
				c.advice = c.rows
			}
			return c
		}
	}
	return nil
}

// headline is the sentence about a violation: who held what at once, or what did
// not happen, and the cause.
func (c *cause) headline(p *pair) sentence {
	if p == nil {
		return c.sentence
	}
	return say("%s: %s", p.headline(), c.sentence)
}

// headline says who held what at once.
func (p *pair) headline() sentence {
	a, b, key := p.holder(p.a), p.holder(p.b), quote(p.key)
	took := say("at %s", p.b.granted()) // the history ends with the second grant
	if p.overlap() > 0 {
		took = say("for %s", p.overlapText())
	}
	switch {
	case p.a.Permits > 0:
		size := proved(proofSetting, format.Count(p.r.History.Limit(p.a.Key), "permit"))
		return say("%[3]s together held more than the %[2]s of %[4]s %[1]s", took, size, p.crowd(), key)
	case p.a.Client == p.b.Client:
		return say("%s held %s twice at once %s", a, key, took)
	}
	return say("%s and %s both held %s %s", a, b, key, took)
}

// maxCrowd is how many clients a headline lists.
const maxCrowd = 6

// crowd are the clients that held permits, the two of the pair among them.
func (p *pair) crowd() string {
	var names []string
	for _, c := range append(slices.Clone(p.v.Clients), p.a.Client, p.b.Client) {
		if name := clientName(c); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > maxCrowd {
		names = []string{clientName(p.a.Client), clientName(p.b.Client), "others"}
	}
	return list(names)
}

// holder is the client of a hold, with its mode where the lock has modes.
func (p *pair) holder(h *hold) string {
	switch {
	case p.a.Reader == p.b.Reader:
		return h.String()
	case h.Reader:
		return h.String() + " (reading)"
	}
	return h.String() + " (writing)"
}

// overlapText is the length of the overlap, which is that of the violation. Of permits, other holds than the two of the
// pair may begin or end it.
func (p *pair) overlapText() sentence {
	from, until := p.b.granted(), p.a.ended()
	if p.b.to < p.a.to {
		until = p.b.ended()
	}
	during := p.r.during(p.v)
	for h := range each(p.r.holds) {
		switch {
		case during.length() == 0 || p.r.keyName(h.Key) != p.v.Key:
		case h.From == during.from:
			from = h.granted()
		case h.to == during.until:
			until = h.ended()
		}
	}
	if until.Event < 0 {
		until = point{Event: p.r.lastEvent(), Time: p.r.History.End}
	}
	return proved(proofElapsed, format.Duration(p.overlap()), from, until)
}

// about reports whether the violation is about that key.
func (q *inquiry) about(key int32) bool { return q.r.keyName(key) == q.v.Key }

// cites reports whether one of these events is evidence of the violation.
func (q *inquiry) cites(events ...int32) bool {
	for _, e := range events {
		if slices.Contains(q.v.Events, int(e)) {
			return true
		}
	}
	return false
}

// explains is how much of a violation a cause explains: 0 if no mechanism fits.
func (c *cause) explains() int {
	switch {
	case c.name == faultBetween || c.name == unknownCause:
		return 0
	case len(c.faults) == 0, c.indirect:
		return 1
	}
	return explainsByFault
}

const explainsByFault = 2
