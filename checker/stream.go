package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/exclusion"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
)

// streamBatch is how many operations a [Stream] takes before it judges them.
const streamBatch = 20_000

// maxReaders is how many readers of a key a [Stream] remembers.
const maxReaders = 8

// maxKept is how many violations of a property a [Stream] remembers.
const maxKept = 10_000

// Stream judges a history while it is recorded, in memory that does not grow with its length. It keeps the operations
// in flight or of unknown outcome, a few grants for each key, and the grants during the longest current wait. It judges
// the properties whose violations can all be proved from operations in flight at one time (see [Streamed]), with the
// same checkers as [Judge], repeatedly and on the part of the history that still matters.
//
// It belongs to one goroutine. Add takes the events in their order; Look and Judgement may be called at any time.
type Stream struct {
	o             given.Options
	b             *history.Builder
	specs         []Spec
	found         map[property.Name]*foundViolations
	unreported    []property.Violation
	limit         int                                         // operations kept before it judges and trims
	trimmed       struct{ operations, grants, contended int } // how many
	unknownOwners map[string]bool
	unknownWhy    map[string]ledger.UnknownCause
	readers       map[string][]string // by key: its first readers
	unsized       map[string]bool     // semaphores whose size was unknown while they were held
	last          []property.Result   // of the latest judgement
	applied       map[property.Name]bool
	belated       bool           // an event was about an earlier time
	contended     map[int32]bool // by the request of a grant that was not trimmed
	grants        int
}

// foundViolations are the violations of one property so far.
type foundViolations struct {
	list    []property.Violation
	at      map[[2]int]int // index in list, by identity
	more    int            // not kept
	doubted map[int]bool   // by index in list: a later notice may excuse it
}

// Streamed are the properties that a [Stream] judges. Of [Exercised] it judges only the contention.
func Streamed() []property.Name {
	return []property.Name{property.Exclusion, property.LeaseExclusion, property.Permits, property.ReadersWriter,
		property.Fencing, property.Exercised}
}

// NewStream begins to judge a run of that many clients; 0 if it is not known. Options.Only defaults to [Streamed].
func NewStream(o property.Options, clients int) *Stream {
	s := &Stream{o: given.Options{Options: o}, b: history.NewBuilder(), found: make(map[property.Name]*foundViolations),
		limit:         streamBatch,
		unknownOwners: make(map[string]bool), unknownWhy: make(map[string]ledger.UnknownCause),
		readers: make(map[string][]string), unsized: make(map[string]bool),
		applied: make(map[property.Name]bool), contended: make(map[int32]bool)}
	s.o.Keep = maxKept
	s.b.History().Clients = clients
	if len(s.o.Only) == 0 {
		s.o.Only = Streamed()
	}
	for _, p := range Streamed() {
		spec, _ := Find(p)
		if slices.Contains(s.o.Only, p) && p != property.Exercised {
			s.specs = append(s.specs, spec)
			s.found[p] = &foundViolations{at: make(map[[2]int]int), doubted: make(map[int]bool)}
		}
	}
	return s
}

// SetProcessNames sets the names of the processes that have no number, as far as they are known.
func (s *Stream) SetProcessNames(named []string) { s.b.History().ProcessNames = named }

// Add takes the next event; line is its line in a file, or 0.
func (s *Stream) Add(e *history.Event, line int) error {
	if err := s.b.Add(e, line); err != nil {
		return err
	}
	s.doubtLate(e)
	if h := s.b.History(); len(h.Spans) >= s.limit || len(h.Notices) >= s.limit || len(h.Touches) >= s.limit {
		s.look(false)
		s.trim()
	}
	return nil
}

// Look judges the events so far, and returns the violations that it did not return before. They are final, unless it
// turns out later that the holds of an owner are unknown.
func (s *Stream) Look() []property.Violation {
	s.look(false)
	news := s.unreported
	s.unreported = nil
	return news
}

// look judges the kept events. Unless the run is over, a hold that has not ended has certainly lasted until now, and
// not longer.
func (s *Stream) look(over bool) {
	h := s.o.WithLimits(s.b.History())
	v, err := safeView(h, s.o)
	s.last = s.last[:0]
	if err != nil {
		for _, spec := range s.specs {
			s.last = append(s.last, undecided(spec.Name, err))
		}
		return
	}
	for owner, is := range v.OwnerOrder {
		if is == ledger.OrdUnknown {
			s.unknownOwners[h.Owners[owner]], s.unknownWhy[h.Owners[owner]] = true, v.UnknownWhy[owner]
		}
	}
	for _, i := range v.Rare {
		if owner := h.Owners[h.Spans[i].Owner]; h.Spans[i].Lapsed { // an earlier judgement may be about that hold
			s.unknownOwners[owner], s.unknownWhy[owner] = true, ledger.LeaseEnded
		}
	}
	for i := range v.Holds {
		key := v.Holds[i].Key
		list, owner := s.readers[h.Keys[key]], h.Owners[v.Holds[i].Owner]
		if v.Holds[i].Reader && len(list) < maxReaders && !slices.Contains(list, owner) {
			s.readers[h.Keys[key]] = append(list, owner)
		}
		if h.Limit(key) == history.UnknownLimit {
			s.unsized[h.Keys[key]] = true
		}
	}
	for _, now := range []bool{false, true} { // tokens are compared before holds that have not ended are cut off
		for _, spec := range s.specs {
			if (spec.Name != property.Fencing) == now {
				s.record(spec.Name, spec.safely(v, s.o))
			}
		}
		if !over {
			endNow(v)
		}
	}
	s.countGrants(v, over)
}

// endNow ends belief in the holds that have not ended where it is certain: now, or where a release without a reply
// was invoked. If that release is refused because the hold does not exist, belief ended there, even if it was one of
// an inner level.
func endNow(v *bounds.View) {
	releasing := make(map[ledger.OwnerKey]time.Duration)
	for _, s := range refs.All(v.H.Spans) {
		if _, known := releasing[ledger.Of(s)]; s.Ended < 0 && s.Op == history.OpRelease &&
			!known {
			releasing[ledger.Of(s)] = s.Call
		}
	}
	for _, h := range refs.All(v.Holds) {
		if h.Until == segment.Never {
			h.Until = max(h.From, v.H.End)
		}
		if call, is := releasing[h.At()]; is && h.Until > call {
			h.Until = max(h.From, call)
		}
	}
}

// record adds the findings of a checker.
func (s *Stream) record(p property.Name, r property.Result) {
	s.applied[p] = s.applied[p] || r.Outcome != property.NotApplicable
	t := s.found[p]
	for _, w := range r.Violations {
		at := identify(p, w)
		n, known := t.at[at]
		switch {
		case known:
			t.list[n] = w // it lasts longer now
			delete(t.doubted, n)
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

// identify returns the identity of a violation: its two events or, of fencing, the second one, because each grant is
// reported with one earlier grant only.
func identify(p property.Name, w property.Violation) [2]int {
	x, y := w.Events[0], w.Events[min(1, len(w.Events)-1)]
	if p == property.Fencing {
		return [2]int{-1, y}
	}
	return [2]int{min(x, y), max(x, y)} // grants at one instant may be swapped
}

// Judgement is the verdict on the events so far, as if the run were over. The stream can be continued.
func (s *Stream) Judgement() Judgement {
	start := time.Now()
	s.look(true)
	h := s.b.History()
	j := judgementOf(s.o, h)
	j.Spans = s.trimmed.operations + len(h.Spans)
	for _, spec := range s.specs {
		j.Results = append(j.Results, s.result(spec.Name))
	}
	j.Results = append(j.Results, s.exercised(j.Spans))
	j.eachText(h.NameProcesses) // in place of numbers of clients
	j.decide(s.o)
	j.onOneLine()
	j.Took = time.Since(start)
	return j
}

// result summarizes the findings about a property.
func (s *Stream) result(p property.Name) property.Result {
	i := slices.IndexFunc(s.last, func(r property.Result) bool { return r.Property == p })
	r := s.last[i]
	r.Counts = nil
	r.Violations = s.standing(p)
	if r.Total = len(r.Violations); r.Total > 0 {
		r.Total += s.found[p].more
	}
	switch {
	case r.Total > 0:
		r.Outcome = property.Violated
		slices.SortFunc(r.Violations, func(a, b property.Violation) int {
			return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Start, b.Start))
		})
		r.Summary = r.Violations[0].Text
		if r.Total > 1 {
			r.Summary += ", and " + format.Count(r.Total-1, "more violation")
		}
	case len(s.found[p].doubted) > 0:
		r.Outcome = property.Undecided
		r.Summary = "a lease was outlived, but a stall or a loss that was noted later may excuse it: judge the whole history"
	case len(s.unknownOwners) > 0 && (p == property.Exclusion || p == property.LeaseExclusion || s.applied[p]):
		r.Outcome = property.Undecided
		var owners [ledger.UnknownCauses]int
		for _, d := range s.unknownWhy { // order does not matter: it counts
			owners[d]++
		}
		r.Summary = ledger.UnknownHolds(owners)
	case p == property.Permits && s.unknownSize() != "":
		r.Outcome, r.Summary = property.Undecided, exclusion.UnknownSize(s.unknownSize())
	case s.applied[p] && (p == property.Exclusion || p == property.LeaseExclusion) &&
		len(s.semaphores()) == len(s.b.History().Keys):
		r.Outcome = property.NotApplicable // it was applied to a semaphore of one permit, which has more by now
		r.Summary = "all keys are semaphores, which do not exclude: see permits"
	case s.applied[p]:
		r.Outcome, r.Summary = property.Holds, "not violated in "+format.Count(s.grants, "grant")
	}
	return r
}

// unknownSize is a semaphore whose number of permits was never recorded; "" if there is none.
func (s *Stream) unknownSize() string {
	h := s.o.WithLimits(s.b.History())
	for key, name := range h.Keys {
		if s.unsized[name] && h.Limit(int32(key)) == history.UnknownLimit {
			return finding.LockName(name)
		}
	}
	return ""
}

// read reports whether a key certainly has readers.
func (s *Stream) read(key string) bool {
	return slices.ContainsFunc(s.readers[key], func(owner string) bool { return !s.unknownOwners[owner] })
}

// semaphores are the keys that have more than one permit.
func (s *Stream) semaphores() map[string]bool {
	h := s.o.WithLimits(s.b.History())
	permits := make(map[string]bool)
	for key, name := range h.Keys {
		if limit := h.Limit(int32(key)); limit != 0 && limit != 1 {
			permits[name] = true
		}
	}
	return permits
}

// standing are the violations of a property that no later event has refuted: that the holds of an owner are unknown, or
// that a key has permits. A writer that overlapped with another before the key had readers violates readers-writer too.
func (s *Stream) standing(p property.Name) (list []property.Violation) {
	permits := s.semaphores()
	if p == property.Permits && len(s.unknownOwners) > 0 {
		return nil // a sum of permits may contain some of such an owner
	}
	ok := func(w property.Violation) bool {
		return !slices.ContainsFunc(w.Owners, func(o string) bool { return s.unknownOwners[o] }) &&
			!(permits[w.Key] && (p == property.Exclusion || p == property.LeaseExclusion)) &&
			!(p == property.ReadersWriter && !s.read(w.Key))
	}
	for n, w := range s.found[p].list {
		if ok(w) && !s.found[p].doubted[n] {
			list = append(list, w)
		}
	}
	if p != property.ReadersWriter || s.found[property.Exclusion] == nil {
		return list
	}
	for _, w := range s.found[property.Exclusion].list {
		if _, known := s.found[p].at[identify(p, w)]; !known && s.read(w.Key) && ok(w) {
			w.Rule = "a writer holds the lock alone"
			list = append(list, w)
		}
	}
	return list
}
