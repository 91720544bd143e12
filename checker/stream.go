package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// streamBatch is after how many operations at the latest a [Stream] judges what has come.
const streamBatch = 20_000

// maxReaders is how many owners a [Stream] remembers that took a key to read.
const maxReaders = 8

// maxTold is how many violations of a property a [Stream] remembers.
const maxKept = 10_000

// Stream judges a history while it goes on, in memory that does not grow with
// its length: what is kept is what is under way, the operations of unknown
// outcome, a few grants for each key, and those during the longest wait that is
// not over. It judges those properties of which every violation can be proved
// by what was under way at some time (see [Streamed]), by the same checkers as
// [Judge]: on the part of the history that can still matter, again and again.
//
// It belongs to one goroutine. Add takes the events in their order; Look and
// Judgement may be called at any time.
type Stream struct {
	o          Options
	b          *history.Builder
	specs      []Spec
	found      map[Property]*foundViolations
	unreported []Violation
	bite       contention
	limit      int // operations at which it judges again
	before     int // of them before the last Trim, less those that it kept
	concurrent map[string]bool
	readers    map[string][]string // by key: the first owners that took it to read
	unsized    map[string]bool     // semaphores of unknown size, when they were held
	last       []Result            // of the last judgement
	applied    map[Property]bool
}

// toldViolations are the violations of one property that were found so far.
type foundViolations struct {
	list []Violation
	at   map[[2]int]int // index in list, by what was violated
	more int            // that were not kept
}

// Streamed is the properties that a [Stream] judges. Of bite it judges whether
// clients were in each other's way.
func Streamed() []Property {
	return []Property{Exclusion, LeaseExclusion, Permits, ReadersWriter, Fencing, Bite}
}

// NewStream begins a judgement of a run of that many clients (0: not known).
// Options.Only is [Streamed] if it is empty.
func NewStream(o Options, clients int) *Stream {
	s := &Stream{o: o, b: history.NewBuilder(), found: make(map[Property]*foundViolations), limit: streamBatch,
		concurrent: make(map[string]bool), readers: make(map[string][]string), unsized: make(map[string]bool),
		applied: make(map[Property]bool)}
	s.o.Keep = maxKept
	s.bite = newContest(clients)
	s.b.Current().Clients = clients
	if len(s.o.Only) == 0 {
		s.o.Only = Streamed()
	}
	for _, p := range Streamed() {
		spec, _ := Find(p)
		if slices.Contains(s.o.Only, p) && p != Bite {
			s.specs = append(s.specs, spec)
			s.found[p] = &foundViolations{at: make(map[[2]int]int)}
		}
	}
	return s
}

// Name tells the names of processes that have no number, as far as they are known.
func (s *Stream) SetProcessNames(named []string) { s.b.Current().ProcessNames = named }

// Add takes the next event, from the given line of a file (0: from no file).
func (s *Stream) Add(e *history.Event, line int) error {
	if err := s.b.Add(e, line); err != nil {
		return err
	}
	s.bite.add(e)
	h := s.b.Current()
	if len(h.Spans) >= s.limit || len(h.Notices) >= s.limit || len(h.Touches) >= s.limit {
		s.look(false)
		s.trim()
	}
	return nil
}

// Look judges what has come so far, and returns the violations that it did not
// return before. They are certain, but for owners that later turn out to have
// had two operations under way at once.
func (s *Stream) Look() []Violation {
	s.look(false)
	news := s.unreported
	s.unreported = nil
	return news
}

// look judges what is kept. Unless it is over, a hold that has not ended has
// certainly lasted until now, and no longer.
func (s *Stream) look(over bool) {
	h := s.o.withLimits(s.b.Current())
	v, err := safeView(h, s.o.LockKind)
	s.last = s.last[:0]
	if err != nil {
		for _, spec := range s.specs {
			s.last = append(s.last, undecided(spec.Name, err))
		}
		return
	}
	for owner, is := range v.ownerOrder {
		if is == concurrent {
			s.concurrent[h.Owners[owner]] = true
		}
	}
	for i := range v.holds {
		key := v.holds[i].key
		list, owner := s.readers[h.Keys[key]], h.Owners[v.holds[i].owner]
		if v.holds[i].reader && len(list) < maxReaders && !slices.Contains(list, owner) {
			s.readers[h.Keys[key]] = append(list, owner)
		}
		if h.Limit(key) == history.UnknownLimit {
			s.unsized[h.Keys[key]] = true
		}
	}
	for _, now := range []bool{false, true} { // what may still go on is an end only where it has to be
		for _, spec := range s.specs {
			if (spec.Name != Fencing) == now {
				s.record(spec.Name, spec.safely(v, h, s.o))
			}
		}
		if !over {
			v.endNow()
		}
	}
}

// endNow ends belief in the holds that go on where it is certain: now, or where
// a release was invoked that is not answered. If that is refused because there is
// no such hold, belief ended there, also if it should have left another level.
func (v *view) endNow() {
	releasing := make(map[ownerKey]time.Duration)
	for i := range v.h.Spans {
		s := &v.h.Spans[i]
		if _, known := releasing[ownerKey{s.Owner, s.Key}]; s.Ended < 0 && s.Op == history.OpRelease && !known {
			releasing[ownerKey{s.Owner, s.Key}] = s.Call
		}
	}
	for i := range v.holds {
		h := &v.holds[i]
		if h.until == never {
			h.until = max(h.from, v.h.End)
		}
		if call, is := releasing[ownerKey{h.owner, h.key}]; is && h.until > call {
			h.until = max(h.from, call)
		}
	}
}

// take notes what a checker found.
func (s *Stream) record(p Property, r Result) {
	s.applied[p] = s.applied[p] || r.Outcome != NotApplicable
	t := s.found[p]
	for _, w := range r.Violations {
		at := identify(p, w)
		n, known := t.at[at]
		switch {
		case known:
			t.list[n] = w // it lasts for longer
		case len(t.list) >= maxKept:
			t.more++
		default:
			t.at[at] = len(t.list)
			t.list = append(t.list, w)
			s.unreported = append(s.unreported, w)
		}
	}
	r.Violations = nil
	s.last = append(s.last, r)
}

// about is what a violation is about: two events, or of fencing the second of
// them, because of a grant only one that it breaks a rule with is told.
func identify(p Property, w Violation) [2]int {
	x, y := w.Events[0], w.Events[min(1, len(w.Events)-1)]
	if p == Fencing {
		return [2]int{-1, y}
	}
	return [2]int{min(x, y), max(x, y)} // grants of one instant may change places
}

// Judgement is the verdict on what has come, as if the run were over. The stream may go on afterwards.
func (s *Stream) Judgement() Judgement {
	start := time.Now()
	s.look(true)
	h := s.b.Current()
	j := Judgement{Spans: s.before + len(h.Spans), Events: h.Events, Problems: h.Problems, LockKind: s.o.LockKind}
	for _, spec := range s.specs {
		j.Results = append(j.Results, s.result(spec.Name))
	}
	j.Results = append(j.Results, s.bite.result(s.o, j.Spans, len(h.Faults)))
	j.nameProcesses(h)
	j.decide(s.o)
	j.Took = time.Since(start)
	return j
}

// result sums up what was found of a property.
func (s *Stream) result(p Property) Result {
	i := slices.IndexFunc(s.last, func(r Result) bool { return r.Property == p })
	r := s.last[i]
	r.Counts = nil
	r.Violations = s.standing(p)
	if r.Total = len(r.Violations); r.Total > 0 {
		r.Total += s.found[p].more
	}
	switch {
	case r.Total > 0:
		r.Outcome = Violated
		slices.SortFunc(r.Violations, func(a, b Violation) int {
			return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Start, b.Start))
		})
		r.Summary = r.Violations[0].Text
		if r.Total > 1 {
			r.Summary += ", and " + format.Count(r.Total-1, "more violation")
		}
	case len(s.concurrent) > 0 && (p == Exclusion || p == LeaseExclusion || s.applied[p]):
		r.Outcome = Undecided
		r.Summary = unknownHolds(len(s.concurrent))
	case p == Permits && s.unknownSize() != "":
		r.Outcome, r.Summary = Undecided, unknownSize(s.unknownSize())
	case s.applied[p]:
		r.Outcome, r.Summary = Holds, "not violated in "+format.Count(s.bite.grants, "grant")
	}
	return r
}

// unknownSize is a semaphore of which it was never told how many permits it has; "" if there is none.
func (s *Stream) unknownSize() string {
	h := s.o.withLimits(s.b.Current())
	for key, name := range h.Keys {
		if s.unsized[name] && h.Limit(int32(key)) == history.UnknownLimit {
			return lockName(name)
		}
	}
	return ""
}

// read says whether a key was certainly taken to read.
func (s *Stream) read(key string) bool {
	return slices.ContainsFunc(s.readers[key], func(owner string) bool { return !s.concurrent[owner] })
}

// stands is the violations of a property that nothing seen later has taken back:
// an owner whose holds cannot be told, or a key that has permits. A writer who met
// one before anybody took the key to read breaks the rule of readers and writers too.
func (s *Stream) standing(p Property) (list []Violation) {
	h := s.o.withLimits(s.b.Current())
	permits := make(map[string]bool)
	for key, name := range h.Keys {
		if limit := h.Limit(int32(key)); limit != 0 && limit != 1 {
			permits[name] = true
		}
	}
	if p == Permits && len(s.concurrent) > 0 {
		return nil // they are told as a sum, in which such an owner may have a part
	}
	ok := func(w Violation) bool {
		return !slices.ContainsFunc(w.Owners, func(o string) bool { return s.concurrent[o] }) &&
			!(permits[w.Key] && (p == Exclusion || p == LeaseExclusion)) && !(p == ReadersWriter && !s.read(w.Key))
	}
	for _, w := range s.found[p].list {
		if ok(w) {
			list = append(list, w)
		}
	}
	if p != ReadersWriter || s.found[Exclusion] == nil {
		return list
	}
	for _, w := range s.found[Exclusion].list {
		if _, known := s.found[p].at[identify(p, w)]; !known && s.read(w.Key) && ok(w) {
			w.Rule = "a writer holds the lock alone"
			list = append(list, w)
		}
	}
	return list
}
