// Package exclusion judges which holds overlap: exclusion, lease-exclusion, readers-writer and permits.
package exclusion

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/internal/format"
)

// MaxPairs bounds the pairs that are examined if a lock does not exclude: their number grows with the square of the
// number of holds.
const MaxPairs = 1 << 22

// The rules of exclusion and of lease-exclusion.
const (
	heldTwice    = iota // two holds at once
	readersShare        // acquits: both only read
	permitsShare        // acquits: a semaphore has several permits
	leasesOver          // acquits lease-exclusion: one promise had ended
)

func Rules() finding.Rules {
	return finding.Rules{
		heldTwice: {Name: "held-twice"}, readersShare: {Name: "readers-share"}, permitsShare: {Name: "permits-share"},
	}
}

func LeaseRules() finding.Rules { return append(Rules(), finding.Rule{Name: "promise-over"}) }

// Check looks for overlapping holds with an interval sweep.
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
func Check(v *bounds.View, o given.Options) property.Result {
	found := finding.New(o)
	all := overlaps(v, exclusive(v, o), func(x, y int32, s segment.Segment) {
		found.Add(finding.Finding{X: x, Y: y, Start: s.From, End: v.Clipped(s)})
	})
	r := found.Result(property.Exclusion, func(f finding.Finding) property.Violation {
		x, y := &v.Holds[f.X], &v.Holds[f.Y]
		class, why := Blame(v, x, y, segment.Of(f.Start, f.End), o)
		w := PairViolation(v, x, y, segment.Of(f.Start, f.End))
		w.Rule = finding.Either(x.Reader || y.Reader, "a writer is the only holder of the lock",
			"only one owner holds the lock") +
			" from acquire returned to release invoked"
		w.Class = class
		w.Text += why
		return w
	})
	return holdsResult(v, r, all, "")
}

// holdsResult fills in the parts common to both kinds of exclusion; when says at what time no two holds overlapped.
func holdsResult(v *bounds.View, r property.Result, all bool, when string) property.Result {
	r.Counts = map[string]int64{"holds": int64(len(v.Holds)), "overlaps": int64(r.Total)}
	switch {
	case !all:
		r.Summary += fmt.Sprintf(" (at least: counting stopped after %d pairs)", MaxPairs)
	case r.Outcome == property.Holds && v.UnknownOwners > 0:
		r.Outcome = property.Undecided
		r.Summary = ledger.UnknownHolds(v.UnknownCounts)
	case len(v.Holds) == 0:
		r.Outcome = property.NotApplicable
		r.Summary = finding.NeverGranted
	case r.Outcome == property.Holds:
		summarizeExclusion(v, &r, when)
	}
	return r
}

// summarizeExclusion writes the summary. Readers, and owners of permits of a semaphore, may hold a lock at once.
func summarizeExclusion(v *bounds.View, r *property.Result, when string) {
	alone, readers, others := 0, false, 0
	for key, holds := range v.ByKey {
		if v.Excludes(int32(key)) {
			alone += len(holds)
			readers = readers || slices.ContainsFunc(holds, func(i int32) bool { return v.Holds[i].Reader })
		} else {
			others += len(holds)
		}
	}
	if alone == 0 {
		r.Outcome = property.NotApplicable
		r.Summary = format.Count(others, "hold") + finding.OnlySemaphores
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

// beliefEnd is when the owner stopped relying on a hold.
func beliefEnd(h *ledger.Hold) time.Duration { return h.Until }

// exclusive are the pairs of holds that exclusion is about.
func exclusive(v *bounds.View, o given.Options) overlapQuery {
	p := overlapQuery{slack: o.ClockError, end: beliefEnd, share: o.Applies(readersShare)}
	if len(v.H.Limits) == 0 || !o.Applies(permitsShare) {
		return p
	}
	p.keys = make([]bool, len(v.ByKey))
	for key := range p.keys {
		p.keys[key] = v.Excludes(int32(key))
	}
	return p
}

// Blame is the class of an overlap, and a clause about it.
func Blame(v *bounds.View, x, y *ledger.Hold, s segment.Segment, o given.Options) (property.Class, string) {
	if t := min(v.UnrenewedFrom(x), v.UnrenewedFrom(y)); t <= s.From {
		return property.OutlivedLease, "; from " + format.Instant(t) + " a client without a stated validity could not renew"
	}
	if p := v.BothPromised(x, y, s); p.Until-p.From > o.ClockError || (s.From == s.Until &&
		x.PromisedAt(s.From) && y.PromisedAt(s.From)) {
		return property.BrokenPromise, ", inside the validity promised to both" + v.CountedLeases(x, y)
	}
	late, ended := x, x.Lapsed(s.Until)
	if t := y.Lapsed(s.Until); max(t, y.From) < max(ended, x.From) {
		late, ended = y, t
	}
	if v.Lapsed(late) {
		op := finding.Either(v.EndOf(late) == property.RenewalRefused, "renewal", "release")
		return property.OutlivedLease,
			fmt.Sprintf("; the lease of client %d had ended at an unknown time, as its refused %s shows",
				v.Client(late.Span), op)
	}
	if start := v.LeaseStart(late); start != property.LeaseNotCounted && ended == late.Valid && !v.Renewed(late) {
		return property.OutlivedLease, fmt.Sprintf("; the lease of client %d, %s, had ended at %s", v.Client(late.Span),
			start,
			format.Instant(ended))
	}
	return property.OutlivedLease, fmt.Sprintf("; the promise to client %d had ended at %s", v.Client(late.Span),
		format.Instant(ended))
}

// PairViolation is a violation by two holds at once. The evidence is both grants, and the event that ended the first
// hold, which came later.
func PairViolation(v *bounds.View, x, y *ledger.Hold, s segment.Segment) property.Violation {
	w := finding.Involving(v, "", x.Span, y.Span)
	w.Events = []int{v.Granted(x), v.Granted(y)}
	if x.EndEvent >= 0 {
		w.Events = append(w.Events, int(x.EndEvent))
	}
	w.Text = fmt.Sprintf("client %d and client %d both held %s %s", w.Clients[0], w.Clients[1], finding.LockName(w.Key),
		s.Text())
	return w
}
