package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// maxPairs bounds the pairs that are looked at when a lock excludes nobody:
// their number grows with the square of the holds.
const maxPairs = 1 << 22

// The rules of exclusion and of lease-exclusion.
const (
	heldTwice    = iota // two holds at once
	readersShare        // acquits: both only read
	permitsShare        // acquits: a semaphore has room for several
	leasesOver          // acquits lease-exclusion: one promise had run out
)

func exclusionRules() []string {
	return []string{heldTwice: "held-twice", readersShare: "readers-share", permitsShare: "permits-share"}
}

func leaseExclusionRules() []string { return append(exclusionRules(), "promise-over") }

// checkExclusion looks for overlapping holds: the interval sweep.
//
// It is exact. Say a hold's acquire was invoked at a and returned at b, its
// release was invoked at c and returned at d (never, if the outcome is not
// known). Wherever the servers granted and took back the hold, they did it at
// some x in [a,b] and some y in [c,d]: so the hold contains its core [b,c], and
// two overlapping cores prove two holders at once (no false alarm). And if no
// two cores overlap, granting each at b and taking it back at c is a legal
// order (nothing is missed). An acquire of unknown outcome may never have
// happened; a release of unknown outcome may have happened when it was invoked.
// Re-entry by the owner is legal inside a hold and changes neither end; nor does
// an owner that reads and writes stand in its own way.
//
// Belief ends sooner than c if the client was told that its hold was lost, or
// crashed. Closed intervals: touching in one instant is no overlap, but a hold
// of no length strictly inside another is one.
//
// Two that only read may be in together (see readers_writer.go), and how many
// permits are out is another question (see permits.go): where there are
// several, nobody is excluded.
func checkExclusion(v *view, o Options) Result {
	found := newFindings(o)
	all := v.overlaps(v.exclusive(o), func(x, y int32, s segment) {
		found.add(finding{x: x, y: y, start: s.from, end: v.clipped(s)})
	})
	r := found.result(Exclusion, func(f finding) Violation {
		x, y := &v.holds[f.x], &v.holds[f.y]
		class, why := v.blame(x, y, segment{f.start, f.end}, o)
		w := v.pairViolation(x, y, segment{f.start, f.end})
		w.Rule = "only one owner holds the lock from acquire returned to release invoked"
		w.Class = class
		w.Text += why
		return w
	})
	return v.holdsResult(r, all, "")
}

// holdsResult fills in what is the same for both kinds of exclusion; when says
// where the holds did not meet.
func (v *view) holdsResult(r Result, all bool, when string) Result {
	r.Counts = map[string]int64{"holds": int64(len(v.holds)), "overlaps": int64(r.Total)}
	switch {
	case !all:
		r.Summary += fmt.Sprintf(" (at least: counting stopped after %d pairs)", maxPairs)
	case r.Outcome == Holds && v.concurrent > 0:
		r.Outcome = Undecided
		r.Summary = unknownHolds(v.concurrent)
	case len(v.holds) == 0:
		r.Outcome = NotApplicable
		r.Summary = "the lock was never granted"
	case r.Outcome == Holds:
		v.summarizeExclusion(&r, when)
	}
	return r
}

// tellExclusion says what was found to be true: of readers, and of the permits of
// a semaphore, several may be in at once.
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
		r.Summary = format.Count(others, "hold") + ", all of semaphores, which do not exclude: see permits"
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

// excludes says whether a key is held by one at a time, but for readers.
func (v *view) excludes(key int32) bool {
	limit := v.h.Limit(key)
	return limit == 0 || limit == 1
}

// believed ends a hold where the owner ceased to rely on it.
func beliefEnd(h *hold) time.Duration { return h.until }

// exclusive is the pairs that exclusion speaks of.
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

// shown is the end of a segment, or that of the run if it never ends.
func (v *view) clipped(s segment) time.Duration { return max(s.from, min(s.until, v.h.End)) }

// blame says whether an overlap broke a promise or outlived a lease, and a
// clause for people.
func (v *view) blame(x, y *hold, s segment, o Options) (Class, string) {
	if p := bothPromised(x, y, s.from, s.until); p.until-p.from > o.ClockError || (s.from == s.until &&
		x.promisedAt(s.from) && y.promisedAt(s.from)) {
		return BrokenPromise, ", inside the validity promised to both"
	}
	late := x
	if y.lapsed(s.until) < x.lapsed(s.until) {
		late = y
	}
	return OutlivedLease, fmt.Sprintf("; the promise to client %d had ended at %s",
		v.client(late.span), format.Instant(late.lapsed(s.until)))
}

// pairViolation tells of two holds at once. The proof is that both had been
// granted, and the event that ended the first, which came later.
func (v *view) pairViolation(x, y *hold, s segment) Violation {
	key := v.h.Keys[x.key]
	w := Violation{
		Key:     key,
		Clients: []int{v.client(x.span), v.client(y.span)},
		Owners:  []string{v.h.Owners[x.owner], v.h.Owners[y.owner]},
		Events:  []int{v.granted(x), v.granted(y)},
	}
	if x.endEvent >= 0 {
		w.Events = append(w.Events, int(x.endEvent))
	}
	w.Text = fmt.Sprintf("client %d and client %d both held %s for %s (%s to %s)", w.Clients[0], w.Clients[1],
		lockName(key), format.Duration(s.until-s.from), format.Instant(s.from), format.Instant(s.until))
	return w
}
