package reports

import (
	"cmp"
	"fmt"
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

// proofs writes numbers and records their sources.
type proofs struct{ all []proof }

func (s *proofs) add(kind proofKind, text string, from ...point) string {
	s.all = append(s.all, proof{Text: text, Kind: kind, From: from})
	return text
}

// instant is the time of a point.
func (s *proofs) instant(p point) string { return s.add(proofInstant, format.Instant(p.Time), p) }

// elapsed is the time from a to b.
func (s *proofs) elapsed(a, b point) string {
	return s.add(proofElapsed, format.Duration(b.Time-a.Time), a, b)
}

// prove records the sources of the times in text: the instant of a point, the time from the request of an operation to
// its reply, or that between two points that text names as "(1.600 s to 5.000 s)". Another number, such as a bound, may
// equal the time between two points by chance. ops are the points of each operation. It returns text.
func (s *proofs) prove(text string, ops [][]point) string {
	points := slices.Concat(ops...)
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.Time, b.Time) })
	of := map[string]proof{}
	elapsed := func(a, b point) {
		d := format.Duration(b.Time - a.Time)
		of[d] = proof{d, proofElapsed, []point{a, b}}
	}
	for _, op := range ops {
		if len(op) == 2 {
			elapsed(op[0], op[1])
		}
	}
	for i, a := range points {
		for _, b := range points[i+1:] {
			if strings.Contains(text, "("+format.Instant(a.Time)+" to "+format.Instant(b.Time)+")") {
				elapsed(a, b)
			}
		}
	}
	for _, p := range points {
		at := format.Instant(p.Time)
		of[at] = proof{at, proofInstant, []point{p}}
	}
	for _, number := range digits.FindAllString(text, -1) {
		if p, ok := of[number]; ok {
			s.all = append(s.all, p)
		}
	}
	return text
}

// token is the fencing token of an event, or the highest one that it had seen.
func (s *proofs) token(token uint64, p point) string {
	return s.add(proofToken, fmt.Sprintf("token %d", token), p)
}

// quote is words from the detail of a fault.
func (s *proofs) quote(text string, p point) string { return s.add(proofQuote, text, p) }

func eventAt(index int32, t time.Duration) point { return point{Event: int(index), Time: t} }

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
	for i := range r.History.Spans {
		s := &r.History.Spans[i]
		if s.Owner == h.Owner && s.Key == h.Key && s.Valid == until && s.Outcome == history.OK {
			p.Event = int(s.Ended)
		}
	}
	for i := range r.History.Notices {
		n := &r.History.Notices[i]
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
