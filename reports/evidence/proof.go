package evidence

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// Proof is a number of the headline and its source, so that a reader can look it up in history.jsonl or witness.jsonl.
type Proof struct {
	Text string    `json:"text"` // as in the headline
	Kind proofKind `json:"kind"`
	From []Point   `json:"from"`
}

// proofKind says how a number follows from its points.
type proofKind string

const (
	ProofInstant proofKind = "instant" // the time of the point
	ProofElapsed proofKind = "elapsed" // the time between two points
	ProofToken   proofKind = "token"   // the fencing token of the event, or the highest token that it had seen
	ProofQuote   proofKind = "quote"   // words of the detail of a fault
	ProofCount   proofKind = "count"   // the hold count, or the permits, in the sample or the event
	ProofNodes   proofKind = "nodes"   // how many nodes the samples are from, or the run has
	ProofSetting proofKind = "setting" // from run.json
)

// Point is a recorded event, or a sample of a node.
type Point struct {
	Event int           `json:"event"`                 // index in history.jsonl (a loss: less its age_ns); -1: a sample
	Until bool          `json:"valid_until,omitempty"` // not its time, but the end of the validity or lease that it states
	Node  string        `json:"node,omitempty"`        // of a sample
	Time  time.Duration `json:"time_ns"`

	Key    string        `json:"key,omitempty"`       // of a sample and a lease that it states
	Sample time.Duration `json:"sample_ns,omitempty"` // when that sample was taken
}

// Sentence is a text with the sources of its numbers.
type Sentence struct {
	Text   string
	Proofs []Proof
}

// Say formats a text. A point in its arguments is written as its instant, and a sample as the instant at which it was
// taken; their sources, and the sources of sentences, are recorded in the order of the arguments.
func Say(format string, args ...any) (s Sentence) {
	texts := slices.Clone(args)
	for i, arg := range args {
		switch x := arg.(type) {
		case Point:
			arg = instant(x)
		case *history.Sample:
			arg = instant(SampleAt(x))
		}
		if part, ok := arg.(Sentence); ok {
			texts[i], s.Proofs = part.Text, append(s.Proofs, part.Proofs...)
		}
	}
	s.Text = fmt.Sprintf(format, texts...)
	return s
}

// Add appends a text to a sentence.
func (s *Sentence) Add(format string, args ...any) {
	*s = Say("%s%s", *s, Say(format, args...))
}

// Proved is a number with its sources.
func Proved(kind proofKind, text string, from ...Point) Sentence {
	return Sentence{text, []Proof{{Text: text, Kind: kind, From: from}}}
}

// instant is the time of a point.
func instant(p Point) Sentence { return Proved(ProofInstant, format.Instant(p.Time), p) }

// Elapsed is the time from a to b.
func Elapsed(a, b Point) Sentence { return Proved(ProofElapsed, format.Duration(b.Time-a.Time), a, b) }

// Token is the fencing token of an event, or the highest token that it had seen.
func Token(token uint64, p Point) Sentence {
	return Proved(ProofToken, fmt.Sprintf("token %d", token), p)
}

// Quoted is words from the detail of a fault.
func Quoted(text string, p Point) Sentence { return Proved(ProofQuote, text, p) }

// Prove records the sources of the times in text: the instant of a point, the time from the request of an operation to
// its reply, or that between two points that text names as "(1.600 s to 5.000 s)". Another number, such as a bound, may
// equal the time between two points by chance. ops are the points of each operation.
func Prove(text string, ops [][]Point) Sentence {
	points := slices.Concat(ops...)
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.Time, b.Time) })
	of := map[string][]Proof{}
	add := func(number Sentence) { of[number.Text] = number.Proofs }
	for _, op := range ops {
		if len(op) == 2 {
			add(Elapsed(op[0], op[1]))
		}
	}
	for i, a := range points {
		for _, b := range points[i+1:] {
			if strings.Contains(text, "("+format.Instant(a.Time)+" to "+format.Instant(b.Time)+")") {
				add(Elapsed(a, b))
			}
		}
	}
	for _, p := range points {
		add(instant(p))
	}
	s := Sentence{Text: text}
	for _, number := range Digits.FindAllString(text, -1) {
		s.Proofs = append(s.Proofs, of[number]...)
	}
	return s
}

// EventAt is the instant of an event of the history.
func EventAt(index int32, t time.Duration) Point { return Point{Event: int(index), Time: t} }

// CallAt is the request of an operation.
func CallAt(s *history.Span) Point { return EventAt(s.Invoked, s.Call) }

// ReplyAt is the reply to an operation.
func ReplyAt(s *history.Span) Point { return EventAt(s.Ended, s.Return) }

// SampleAt is the instant of a sample.
func SampleAt(s *history.Sample) Point { return Point{Event: -1, Node: s.Node, Time: s.Time} }

// LeaseAt is the end of the lease that a sample shows at a key.
func LeaseAt(s *history.Sample, key string) Point {
	return Point{Event: -1, Node: s.Node, Key: key, Until: true, Time: s.Time + s.Keys[key].TTL, Sample: s.Time}
}

// GrantedAt is the reply to the acquire that began a hold.
func (h *Hold) GrantedAt() Point { return EventAt(h.Granted, h.From) }

// EndedAt is the event that ended a hold.
func (h *Hold) EndedAt() Point { return EventAt(h.Ended, h.To) }

// Injected is the injection of a fault.
func (f *Fault) Injected() Point { return EventAt(f.Event, f.Inject) }

// Took is the first effect of a fault, or else its injection.
func (f *Fault) Took() Point {
	if len(f.Effects) > 0 {
		return EventAt(f.Effects[0].Index, f.Effects[0].Time)
	}
	return f.Injected()
}

// Healed is the end of a fault: its healing or, if it is known earlier, that a stopped client runs again.
func (f *Fault) Healed() Point {
	if f.Resumed != (Point{}) {
		return f.Resumed
	}
	return EventAt(f.HealEvent, f.Heal)
}

// Validity is the end of the last promise to a hold: the reply to the acquire or the renewal that made it.
func (r *Run) Validity(h *Hold) Point { return r.PromiseEnd(h, h.ValidUntil()) }

// PromiseEnd is the reply that made the promise to a hold which ends at until.
func (r *Run) PromiseEnd(h *Hold, until time.Duration) Point {
	p := Point{Event: int(r.History.Spans[h.Span].Invoked), Until: true, Time: until} // without a validity: its lease
	if stays := r.Kept.Showing(h.Span); h.Lease == checker.LeaseFromServer && len(stays) > 0 {
		p.Event, p.Node, p.Key, p.Sample = -1, stays[0].Node, r.KeyName(h.Key), stays[0].First.Time
	}
	for s := range Each(r.History.Spans) {
		if s.Owner == h.Owner && s.Key == h.Key && s.Valid == until && s.Outcome == history.OK {
			p.Event = int(s.Ended)
		}
	}
	for n := range Each(r.History.Notices) {
		if n.Owner == h.Owner && n.Key == h.Key && n.Valid == until {
			p.Event = int(n.Index)
		}
	}
	return p
}

// ValidityName is the subject of a sentence about the end of a promise.
func (r *Run) ValidityName(h *Hold) string { return r.PromiseName(h, r.Validity(h)) }

// PromiseName is ValidityName for a promise that ends at end.
func (r *Run) PromiseName(h *Hold, end Point) string {
	if end.Event < 0 || end.Event == int(r.History.Spans[h.Span].Invoked) {
		return "its requested lease"
	}
	return "its validity"
}

var Digits = regexp.MustCompile(`[0-9]+(\.[0-9]+)?( (ms|µs|s)\b)?`)
