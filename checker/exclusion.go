package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// maxPairs bounds the pairs that are examined if a lock does not exclude: their number grows with the square of the
// number of holds.
const maxPairs = 1 << 22

// The rules of exclusion and of lease-exclusion.
const (
	heldTwice    = iota // two holds at once
	readersShare        // acquits: both only read
	permitsShare        // acquits: a semaphore has several permits
	leasesOver          // acquits lease-exclusion: one promise had ended
)

func exclusionRules() []string {
	return []string{heldTwice: "held-twice", readersShare: "readers-share", permitsShare: "permits-share"}
}

func leaseExclusionRules() []string { return append(exclusionRules(), "promise-over") }

// checkExclusion looks for overlapping holds with an interval sweep.
//
// It is exact. Let the acquire of a hold be invoked at a and return at b, and its release be invoked at c and return
// at d (never, if the outcome is unknown). The servers began the hold at some x in [a,b] and ended it at some y in
// [c,d]; so the hold contains its core [b,c], and two overlapping cores prove two holders at once (no false alarm).
// And if no two cores overlap, it is a legal order to grant each at b and to end it at c (nothing is missed). An
// acquire of unknown outcome may have had no effect; a release of unknown outcome may have taken effect when it was
// invoked. A re-entry by the owner is legal inside a hold and changes neither end; an owner that reads and writes
// does not conflict with itself.
//
// Belief ends before c if a loss was reported or the client crashed. Intervals are closed: touching at one instant is
// no overlap, but a hold of no length strictly inside another one is.
//
// Two readers may hold the lock at once (see readers_writer.go). A key with several permits does not exclude; how
// many are held is counted in permits.go.
func checkExclusion(v *view, o Options) Result {
	found := newFindings(o)
	all := v.overlaps(v.exclusive(o), func(x, y int32, s segment) {
		found.add(finding{x: x, y: y, start: s.from, end: v.clipped(s)})
	})
	r := found.result(Exclusion, func(f finding) Violation {
		x, y := &v.holds[f.x], &v.holds[f.y]
		class, why := v.blame(x, y, segment{f.start, f.end}, o)
		w := v.pairViolation(x, y, segment{f.start, f.end})
		w.Rule = either(x.reader || y.reader, "a writer is the only holder of the lock", "only one owner holds the lock") +
			" from acquire returned to release invoked"
		w.Class = class
		w.Text += why
		return w
	})
	return v.holdsResult(r, all, "")
}

// holdsResult fills in the parts common to both kinds of exclusion; when says at what time no two holds overlapped.
func (v *view) holdsResult(r Result, all bool, when string) Result {
	r.Counts = map[string]int64{"holds": int64(len(v.holds)), "overlaps": int64(r.Total)}
	switch {
	case !all:
		r.Summary += fmt.Sprintf(" (at least: counting stopped after %d pairs)", maxPairs)
	case r.Outcome == Holds && v.unknownOwners > 0:
		r.Outcome = Undecided
		r.Summary = unknownHolds(v.unknownCounts)
	case len(v.holds) == 0:
		r.Outcome = NotApplicable
		r.Summary = neverGranted
	case r.Outcome == Holds:
		v.summarizeExclusion(&r, when)
	}
	return r
}

// summarizeExclusion writes the summary. Readers, and owners of permits of a semaphore, may hold a lock at once.
func (v *view) summarizeExclusion(r *Result, when string) {
	alone, readers, others := 0, false, 0
	for key, holds := range v.byKey {
		if v.excludes(int32(key)) {
			alone += len(holds)
			readers = readers || slices.ContainsFunc(holds, func(i int32) bool { return v.holds[i].reader })
		} else {
			others += len(holds)
		}
	}
	if alone == 0 {
		r.Outcome = NotApplicable
		r.Summary = format.Count(others, "hold") + onlySemaphores
		return
	}
	r.Summary = format.Count(alone, "hold") + ", no two of them at once" + when
	if readers {
		r.Summary += ", except readers"
	}
	if others > 0 {
		r.Summary += fmt.Sprintf(" (and %d of semaphores: see permits)", others)
	}
}

// excludes reports whether a key has one holder at a time, except for readers.
func (v *view) excludes(key int32) bool {
	limit := v.h.Limit(key)
	return limit == 0 || limit == 1
}

// beliefEnd is when the owner stopped relying on a hold.
func beliefEnd(h *hold) time.Duration { return h.until }

// exclusive are the pairs of holds that exclusion is about.
func (v *view) exclusive(o Options) overlapQuery {
	p := overlapQuery{slack: o.ClockError, end: beliefEnd, share: o.applies(readersShare)}
	if len(v.h.Limits) == 0 || !o.applies(permitsShare) {
		return p
	}
	p.keys = make([]bool, len(v.byKey))
	for key := range p.keys {
		p.keys[key] = v.excludes(int32(key))
	}
	return p
}

// clipped is the end of a segment, or the end of the run if it never ends.
func (v *view) clipped(s segment) time.Duration { return max(s.from, min(s.until, v.h.End)) }

// blame is the class of an overlap, and a clause about it.
func (v *view) blame(x, y *hold, s segment, o Options) (Class, string) {
	if t := min(v.unrenewedFrom(x), v.unrenewedFrom(y)); t <= s.from {
		return OutlivedLease, "; from " + format.Instant(t) + " a client without a stated validity could not renew"
	}
	if p := v.bothPromised(x, y, s); p.until-p.from > o.ClockError || (s.from == s.until &&
		x.promisedAt(s.from) && y.promisedAt(s.from)) {
		return BrokenPromise, ", inside the validity promised to both" + v.countedLeases(x, y)
	}
	late, ended := x, x.lapsed(s.until)
	if t := y.lapsed(s.until); max(t, y.from) < max(ended, x.from) {
		late, ended = y, t
	}
	if v.lapsed(late) {
		op := either(v.endOf(late) == RenewalRefused, "renewal", "release")
		return OutlivedLease, fmt.Sprintf("; the lease of client %d had ended at an unknown time, as its refused %s shows",
			v.client(late.span), op)
	}
	if start := v.leaseStart(late); start != LeaseNotCounted && ended == late.valid && !v.renewed(late) {
		return OutlivedLease, fmt.Sprintf("; the lease of client %d, %s, had ended at %s", v.client(late.span), start,
			format.Instant(ended))
	}
	return OutlivedLease, fmt.Sprintf("; the promise to client %d had ended at %s", v.client(late.span),
		format.Instant(ended))
}

// pairViolation is a violation by two holds at once. The evidence is both grants, and the event that ended the first
// hold, which came later.
func (v *view) pairViolation(x, y *hold, s segment) Violation {
	w := v.involving("", x.span, y.span)
	w.Events = []int{v.granted(x), v.granted(y)}
	if x.endEvent >= 0 {
		w.Events = append(w.Events, int(x.endEvent))
	}
	w.Text = fmt.Sprintf("client %d and client %d both held %s %s", w.Clients[0], w.Clients[1], lockName(w.Key),
		s.text())
	return w
}
