package reports

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// proof is a number of the headline and what it was taken from, so that a reader
// can look it up in history.jsonl or witness.jsonl.
type proof struct {
	Text string    `json:"text"` // as in the headline
	Kind proofKind `json:"kind"`
	From []point   `json:"from"`
}

// proofKind says how a number follows from its points.
type proofKind string

const (
	proofInstant proofKind = "instant" // the time of the point
	proofElapsed proofKind = "elapsed" // the time between two points
	proofToken   proofKind = "token"   // the fencing token of the event, or the highest one that it had seen
	proofQuote   proofKind = "quote"   // words of the detail of a fault
	proofCount   proofKind = "count"   // the hold count, or the permits, in the sample or the event
	proofNodes   proofKind = "nodes"   // how many nodes the samples are from, or the run has
	proofSetting proofKind = "setting" // from run.json
)

// point is a recorded event, or a sample of a node.
type point struct {
	Event int           `json:"event"`                 // index in history.jsonl (a loss: less its age_ns); -1: a sample
	Until bool          `json:"valid_until,omitempty"` // not its time, but the end of the validity or lease that it states
	Node  string        `json:"node,omitempty"`        // of a sample
	Time  time.Duration `json:"time_ns"`

	Key    string        `json:"key,omitempty"`       // of a sample and a lease that it states
	Sample time.Duration `json:"sample_ns,omitempty"` // when that sample was taken
}

// sentence is a text with the sources of its numbers.
type sentence struct {
	text   string
	proofs []proof
}

// say formats a text. Of its arguments a point is written as its instant, and a sample as that at which it was taken;
// their sources, and those of sentences, are recorded in the order of the arguments.
func say(format string, args ...any) (s sentence) {
	texts := slices.Clone(args)
	for i, arg := range args {
		switch x := arg.(type) {
		case point:
			arg = instant(x)
		case *history.Sample:
			arg = instant(sampleAt(x))
		}
		if part, ok := arg.(sentence); ok {
			texts[i], s.proofs = part.text, append(s.proofs, part.proofs...)
		}
	}
	s.text = fmt.Sprintf(format, texts...)
	return s
}

// add appends a text to a sentence.
func (s *sentence) add(format string, args ...any) {
	*s = say("%s%s", *s, say(format, args...))
}

// proved is a number with its sources.
func proved(kind proofKind, text string, from ...point) sentence {
	return sentence{text, []proof{{Text: text, Kind: kind, From: from}}}
}

// instant is the time of a point.
func instant(p point) sentence { return proved(proofInstant, format.Instant(p.Time), p) }

// elapsed is the time from a to b.
func elapsed(a, b point) sentence { return proved(proofElapsed, format.Duration(b.Time-a.Time), a, b) }

// token is the fencing token of an event, or the highest one that it had seen.
func token(token uint64, p point) sentence {
	return proved(proofToken, fmt.Sprintf("token %d", token), p)
}

// quoted is words from the detail of a fault.
func quoted(text string, p point) sentence { return proved(proofQuote, text, p) }

// prove records the sources of the times in text: the instant of a point, the time from the request of an operation to
// its reply, or that between two points that text names as "(1.600 s to 5.000 s)". Another number, such as a bound, may
// equal the time between two points by chance. ops are the points of each operation.
func prove(text string, ops [][]point) sentence {
	points := slices.Concat(ops...)
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.Time, b.Time) })
	of := map[string][]proof{}
	add := func(number sentence) { of[number.text] = number.proofs }
	for _, op := range ops {
		if len(op) == 2 {
			add(elapsed(op[0], op[1]))
		}
	}
	for i, a := range points {
		for _, b := range points[i+1:] {
			if strings.Contains(text, "("+format.Instant(a.Time)+" to "+format.Instant(b.Time)+")") {
				add(elapsed(a, b))
			}
		}
	}
	for _, p := range points {
		add(instant(p))
	}
	s := sentence{text: text}
	for _, number := range digits.FindAllString(text, -1) {
		s.proofs = append(s.proofs, of[number]...)
	}
	return s
}

func eventAt(index int32, t time.Duration) point { return point{Event: int(index), Time: t} }

// callAt and replyAt are the request and the reply of an operation.
func callAt(s *history.Span) point  { return eventAt(s.Invoked, s.Call) }
func replyAt(s *history.Span) point { return eventAt(s.Ended, s.Return) }

func sampleAt(s *history.Sample) point { return point{Event: -1, Node: s.Node, Time: s.Time} }

// granted is the reply to the acquire that began a hold; ended is what ended it.
func (h *hold) granted() point { return eventAt(h.Granted, h.From) }
func (h *hold) ended() point   { return eventAt(h.Ended, h.to) }

// injected and took are the injection of a fault, and its first effect or else the injection.
func (f *injection) injected() point { return eventAt(f.event, f.inject) }

func (f *injection) took() point {
	if len(f.effects) > 0 {
		return eventAt(f.effects[0].Index, f.effects[0].Time)
	}
	return f.injected()
}

// healed is the end of a fault: its healing or, if it is known earlier, that a stopped client runs again.
func (f *injection) healed() point {
	if f.resumed != (point{}) {
		return f.resumed
	}
	return eventAt(f.healEvent, f.heal)
}

// validity is the end of the last promise to a hold: the reply to the acquire, or
// the renewal, that made it.
func (r *Run) validity(h *hold) point {
	until := h.validUntil()
	p := point{Event: int(r.History.Spans[h.Span].Invoked), Until: true, Time: until} // without a validity: its lease
	for s := range each(r.History.Spans) {
		if s.Owner == h.Owner && s.Key == h.Key && s.Valid == until && s.Outcome == history.OK {
			p.Event = int(s.Ended)
		}
	}
	for n := range each(r.History.Notices) {
		if n.Owner == h.Owner && n.Key == h.Key && n.Valid == until {
			p.Event = int(n.Index)
		}
	}
	return p
}

// validityName is what ended at validity: a lock that reports none is taken at its lease.
func (r *Run) validityName(h *hold) string {
	if r.validity(h).Event == int(r.History.Spans[h.Span].Invoked) {
		return "its requested lease"
	}
	return "its validity"
}

var digits = regexp.MustCompile(`[0-9]+(\.[0-9]+)?( (ms|µs|s)\b)?`)
