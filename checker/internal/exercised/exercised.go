// Package exercised judges whether a run tested enough.
package exercised

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/honesty"
	"github.com/lockchaos/lockchaos/checker/internal/latch"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/clientfailures"
	"github.com/lockchaos/lockchaos/internal/format"
)

// The rules of property exercised.
const (
	nothingDone        = iota // no operations at all
	fewContended              // clients did not compete for the lock
	faultWithoutEffect        // a fault had no observed effect
	fewWhileHeld              // no fault hit while the lock was held
	faultNotThere             // a fault hit only servers that had no record of the lock
	faultMissed               // a planned fault was not injected
	noExpiry                  // holders were paused, but none for longer than its lease
	clientEnded               // a client ended by itself
	grantsLost                // a fault removed grants, and nobody asked for the lock in time
	tooLate                   // acquits: a fault just before the end
)

func Rules() finding.Rules {
	return finding.Rules{
		nothingDone: {Name: "no-operations"}, fewContended: {Name: "contended"},
		faultWithoutEffect: {Name: "fault-without-effect"}, fewWhileHeld: {Name: "while-held"},
		faultNotThere: {Name: "fault-elsewhere"}, faultMissed: {Name: "missed-fault"}, noExpiry: {Name: "no-expiry"},
		clientEnded: {Name: "client-ended"}, grantsLost: {Name: "grants-lost"}, tooLate: {Name: "too-late"},
	}
}

// Check checks whether the run could have shown a violation at all. A run without violations proves
// something only if clients competed for the lock and the faults took effect while it was in use. A grant is
// contended if another owner requested the lock during the hold; an await of a latch is contended if the latch was
// certainly counting when it was invoked. A fault counts if it was injected, or its effect was observed, while the
// lock was held or a latch was counting; a fault of a client counts if that client held the lock or, unless it pauses
// the client, had a request about it in flight. If the only faults pause clients, some pause has to outlast a lease.
// A client that ended although no fault had killed it did not do the rest of its work.
func Check(v *bounds.View, o given.Options) property.Result {
	contended, granted, noun := 0, len(v.Holds), "grant"
	Contended(v, func(*ledger.Hold) { contended++ })
	if latches := latch.Latches(v); latches != nil {
		passed, waited := latch.Awaits(v, latches)
		contended, granted, noun = contended+waited, granted+passed, "await"
	}
	seen := faults(v, o)
	injected, landed := seen.injected, seen.whileHeld
	missing := missingOfFaults(v, seen, o)
	if text := honesty.UnaskedLosses(v, o); text != "" && o.Applies(grantsLost) {
		missing = append(missing, text)
	}
	r := Exercised(o, v.H, noun, map[string]int64{"operations": int64(len(v.H.Spans)), "grants": int64(granted),
		"contended_grants": int64(contended), "faults": int64(injected), "faults_while_held": int64(landed),
		"faults_with_effect": int64(injected - len(seen.withoutEffect))}, missing)
	if injected > 0 && r.Outcome == property.Holds {
		with := finding.Either(injected == 1, " with an effect", ", each with an effect")
		r.Summary += fmt.Sprintf("; %s%s, %d while the lock was held", format.Count(injected, "fault"), with, landed)
	}
	if seen.late > 0 && r.Outcome == property.Holds {
		r.Summary += fmt.Sprintf("; %d more came too late to count", seen.late)
	}
	return r
}

// Exercised is the result of [property.Exercised] for the counts c of a history; byFaults is the missing evidence about
// faults.
func Exercised(o given.Options, h *history.History, noun string, c map[string]int64,
	byFaults []string) property.Result {
	r := property.Result{Property: property.Exercised, Outcome: property.Holds, Counts: c}
	contended, granted := int(c["contended_grants"]), int(c["grants"])
	var missing []string
	if why := noOperations(h); why != "" && c["operations"] == int64(len(h.Spans)) { // a stream has trimmed none
		if o.Applies(nothingDone) {
			missing = append(missing, why)
		}
	} else if need := threshold(o.MinContendedGrants, 2); contended < need && o.Applies(fewContended) {
		text := fmt.Sprintf("too few contended %ss, %d of %d (at least %d needed)", noun, contended, granted, need)
		if len(clientfailures.Describe(h)) == 0 {
			text += ": use more clients or a longer run"
		}
		missing = append(missing, text)
	}
	missing = append(missing, byFaults...)
	if ended := clientfailures.Ended(h); len(missing) > 0 || len(ended) > 0 && o.Applies(clientEnded) {
		r.Outcome, r.Total = property.Undecided, len(missing)+len(ended)
		missing = append(clientfailures.Describe(h), missing...)
		r.Summary = "the run tested too little: " + strings.Join(missing, "; ")
		return r
	}
	r.Summary = fmt.Sprintf("%s, %d of them contended", format.Count(granted, noun), contended)
	return r
}

// missingOfFaults lists the effects and injections that are missing from the faults of a run.
func missingOfFaults(v *bounds.View, seen faultEffects, o given.Options) (missing []string) {
	for _, f := range seen.withoutEffect {
		if !o.Applies(faultWithoutEffect) {
			break
		}
		missing = append(missing, fmt.Sprintf("fault %s (%d) was injected at %s and had no observed effect",
			f.Name, f.ID, format.Instant(f.Time)))
	}
	for _, f := range v.H.Faults {
		if f.Phase == history.Missed && o.Applies(faultMissed) {
			missing = append(missing, fmt.Sprintf("planned fault %s was not injected: %s", f.Name, f.Detail))
		}
	}
	need := threshold(o.MinFaultsWhileHeld, 1)
	if seen.injected > 0 && seen.whileHeld < need && o.Applies(fewWhileHeld) {
		missing = append(missing, fmt.Sprintf("%d of %s hit while the lock was held, at least %d needed",
			seen.whileHeld, format.Count(seen.injected, "fault"), need))
		missing = append(missing, seen.elsewhere...)
	}
	if seen.expiry != "" && o.Applies(noExpiry) {
		missing = append(missing, seen.expiry)
	}
	return missing
}

// threshold reads an option of which 0 is the default and less means none.
func threshold(option, standard int) int {
	switch {
	case option == 0:
		return standard
	case option < 0:
		return 0
	}
	return option
}

// Contended finds the holds during which another owner requested the lock: the lock had to refuse or delay a request
// that was in flight at some instant of the hold.
func Contended(v *bounds.View, found func(*ledger.Hold)) {
	attempts := make([][]int32, len(v.ByKey)) // the requests for each key, in the order of their invocations
	for i, s := range refs.All(v.H.Spans) {
		if excuse.IsAcquire(s.Op) {
			attempts[s.Key] = append(attempts[s.Key], i)
		}
	}
	for key, holds := range v.ByKey {
		byEnd := v.Sorted(holds, func(h *ledger.Hold) time.Duration { return h.Until })
		var asked latestTwo // of those invoked before the end of the hold
		n := 0
		for _, x := range refs.At(v.Holds, byEnd) {
			if x.Inner {
				continue
			}
			for n < len(attempts[key]) && v.H.Spans[attempts[key][n]].Call < x.Until {
				s := &v.H.Spans[attempts[key][n]]
				asked.add(s.Owner, s.Return)
				n++
			}
			if asked.without(x.Owner) > x.From {
				found(x)
			}
		}
	}
}

// latestTwo remembers the latest end that was added, and the latest one of another owner.
type latestTwo struct{ first, second ofOwner }

type ofOwner struct {
	owner int32
	end   time.Duration
}

func (l *latestTwo) add(owner int32, end time.Duration) {
	switch x := (ofOwner{owner, end}); {
	case end > l.first.end:
		if l.first.owner != owner {
			l.second = l.first
		}
		l.first = x
	case owner != l.first.owner && end > l.second.end:
		l.second = x
	}
}

// without is the latest end of any other owner; 0 if there is none.
func (l *latestTwo) without(owner int32) time.Duration {
	if l.first.owner != owner {
		return l.first.end
	}
	return l.second.end
}

// noOperations says that a history has no operations, or none on a lock; "": it has some.
func noOperations(h *history.History) string {
	if len(h.Spans) == 0 {
		return "the history has no operations"
	}
	if len(h.Others) == 0 || slices.ContainsFunc(h.Spans, func(s history.Span) bool { return s.Op != history.OpOther }) {
		return ""
	}
	return "the history has no operations on a lock, such as acquire and release: its operations are named " +
		strings.Join(h.Others, ", ")
}
