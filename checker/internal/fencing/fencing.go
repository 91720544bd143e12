// Package fencing judges fencing tokens, the resource that checks them, and the damage at that resource.
package fencing

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/promise"
)

// The rules of fencing.
const (
	tokenOrder     = iota // of grants, in real time
	tokenTwice            // two holds with one token
	tokenOfHolder         // of holds, in the order of holding
	acceptedOld           // the resource accepted an old token
	refusedCurrent        // the resource refused a current token
	grantExpired          // acquits: a slow reply reported a grant whose promise had ended
	guardAccepted         // the lock's own guard accepted an old token
	guardRefused          // the lock's own guard refused a current token
	guardData             // acquits: a fault may have changed the guard's record
	readerRefused         // the lock's own guard refused a reader's token after another reader's
	noToken               // a lock that is fenced granted a hold without a token
	notExclusive          // acquits: readers, and holders of permits, have no order of holding
)

// Check judges the two conditions of fencing: tokens that grow with every grant, and a resource that enforces
// them.
//
// Grants. If one grant returned before another was invoked, the order of the grants and of their tokens is certain. If
// they were concurrent, their order follows from holding: an owner whose promise was in force when its grant returned
// was the latest holder then, so no hold that had ended before has a greater token. (Without that promise nothing
// follows: a slow reply may report a grant that expired long ago.)
//
// A reader may share the token of the last writer, or of other readers: it is not smaller than earlier tokens. Several
// permits are held at once in no particular order: of permits only the order in real time is judged.
//
// Resource. Its own log is in the order of arrival, so one pass decides. A resource that does not enforce tokens
// violates nothing here; the writes that it accepted are damage (see damage.go).
func Check(v *bounds.View, o given.Options) property.Result {
	found := finding.New(o)
	tokens := 0
	for _, holds := range v.ByKey {
		n, grow := tokensGrow(v, holds)
		if tokens += n; grow {
			continue
		}
		grants := make([]int32, 0, n)
		for _, i := range holds {
			if HasToken(v, i) {
				grants = append(grants, i)
			}
		}
		judgeTokens(v, grants, o.ClockError, found)
	}
	fenced := judgeResource(v, found)
	guarded := judgeGuards(v, o, found)
	if o.States(promise.Fenced) {
		withoutToken(v, found, o.States(promise.FencedReaders))
	}
	r := found.Result(property.Fencing, func(f finding.Finding) property.Violation { return fencingViolation(v, f) })
	r.Counts = map[string]int64{"tokens": int64(tokens), "fenced_writes": int64(fenced)}
	if guarded > 0 {
		r.Counts["guarded"] = int64(guarded)
	}
	switch {
	case r.Outcome == property.Violated:
	case v.Unjudged(func(s *history.Span) bool { return s.Token != 0 }):
		r.Outcome, r.Summary = property.Undecided, ledger.UnknownHolds(v.UnknownCounts)
	case tokens == 0 && fenced == 0 && guarded == 0:
		r.Outcome = property.NotApplicable
		r.Summary = finding.NoTokens
	default:
		r.Summary = fmt.Sprintf("%s in growing order, %s checked by an enforcing resource",
			format.Count(tokens, "token"), format.Count(fenced, "write"))
	}
	return r
}

// withoutToken finds the grants without a token. That of a reader may be hidden, unless the lock states that readers
// have one, and only the first of several keys has one.
func withoutToken(v *bounds.View, found *finding.Findings, readers bool) {
	for i, s := range refs.All(v.H.Spans) {
		acquires := excuse.IsAcquire(s.Op)
		if acquires && s.Outcome == history.OK && (s.Write || readers) && !s.Part && s.Token == 0 && !s.Zero &&
			v.H.Limit(s.Key) == 0 {
			found.Add(finding.Finding{Rule: noToken, X: refs.None, Y: i, Start: s.Return, End: s.Return})
		}
	}
}

// tokensGrow counts the grants with tokens, and is a fast path: if tokens grow in the order in which grants returned,
// no pair violates a rule, because in each rule the first grant returned before the second.
func tokensGrow(v *bounds.View, holds []int32) (tokens int, grow bool) {
	grow, last := true, uint64(0)
	for _, i := range holds {
		if !HasToken(v, i) {
			continue
		}
		token := v.Holds[i].Token
		grow = grow && (tokens == 0 || last < token)
		last = token
		tokens++
	}
	return tokens, grow
}

// HasToken reports whether a hold has a token. An inner hold has none of its own.
func HasToken(v *bounds.View, i int32) bool {
	h := &v.Holds[i]
	return !h.Inner && (h.Token != 0 || v.H.Spans[h.Span].Zero)
}

// judgeTokens reports for each grant at most one earlier grant with which it violates a rule.
func judgeTokens(v *bounds.View, grants []int32, slack time.Duration, found *finding.Findings) {
	byCall := v.Sorted(grants, func(h *ledger.Hold) time.Duration { return h.Asked })
	guilty := make(map[int32]bool)
	report := func(rule int, x, y int32) {
		if !guilty[y] && !found.Off.Has(rule) {
			guilty[y] = true
			t := v.Holds[y].From
			found.Add(finding.Finding{Rule: rule, X: x, Y: v.Holds[y].Span, Start: t, End: t})
		}
	}
	alone := func(i int32) bool { return !v.Holds[i].Reader && v.H.Limit(v.Holds[i].Key)|1 == 1 }
	before := greatestBefore(v, grants, byCall, func(x, y *ledger.Hold) bool { return x.From < y.Asked-slack })
	for n, y := range byCall {
		least := v.Holds[y].Token
		if v.Holds[y].Reader {
			least++
		}
		if x := before[n]; x >= 0 && v.Holds[x].Token >= least {
			report(tokenOrder, x, y)
		}
	}
	first := make(map[uint64]int32, len(grants))
	for _, y := range grants {
		x, twice := first[v.Holds[y].Token]
		switch {
		case twice && (alone(y) && (alone(x) || v.Holds[x].From < v.Holds[y].From) || found.Off.Has(notExclusive)):
			report(tokenTwice, x, y)
		case !twice || alone(y):
			first[v.Holds[y].Token] = y
		}
	}
	ordered := grants
	if !found.Off.Has(notExclusive) {
		ordered = slices.DeleteFunc(slices.Clone(grants), func(i int32) bool { return !alone(i) })
	}
	byEnd := v.Sorted(ordered, func(h *ledger.Hold) time.Duration { return h.Until })
	before = greatestBefore(v, byEnd, ordered, func(x, y *ledger.Hold) bool { // within one instant there is no order
		return x.Until <= y.From-slack && x.From < y.From
	})
	for n, j := range ordered {
		y := &v.Holds[j]
		x := before[n]
		if x >= 0 && v.Holds[x].Token > y.Token && (y.PromisedAt(y.From) || found.Off.Has(grantExpired)) {
			report(tokenOfHolder, x, j)
		}
	}
}

// greatestBefore is, for each grant of ys, the one of xs with the greatest token that comes before it; -1 if there is
// none. Both lists are sorted so that before is monotone.
func greatestBefore(v *bounds.View, xs, ys []int32, before func(x, y *ledger.Hold) bool) []int32 {
	greatest := make([]int32, len(ys))
	n, best := 0, int32(-1)
	for i, y := range ys {
		for n < len(xs) && before(&v.Holds[xs[n]], &v.Holds[y]) {
			if best < 0 || v.Holds[xs[n]].Token > v.Holds[best].Token {
				best = xs[n]
			}
			n++
		}
		greatest[i] = best
	}
	return greatest
}

// judgeResource examines the decisions of enforcing resources, and returns how many writes they checked.
func judgeResource(v *bounds.View, found *finding.Findings) int {
	log := newTouchLog(len(v.H.Keys))
	fenced := 0
	for i, t := range refs.All(v.H.Touches) {
		newest, by := log.newest(t)
		log.add(i, t)
		if !t.Fenced {
			continue
		}
		fenced++
		switch {
		case t.Accepted && t.Token < newest:
			found.Add(finding.Finding{Rule: acceptedOld, X: by, Y: i, Start: t.Time, End: t.Time})
		case !t.Accepted && t.Token != 0 && t.Token >= newest:
			found.Add(finding.Finding{Rule: refusedCurrent, X: by, Y: i, Start: t.Time, End: t.Time})
		}
	}
	return fenced
}

// Rules are the rules of fencing, except for the rules about a resource.
func Rules() finding.Rules {
	const (
		first = "client $other acquired $lock with token $former at $since"
		guard = "a guard accepts a token unless it has seen a greater one"
	)
	return finding.Rules{
		tokenOrder: {Name: "order", Class: property.BrokenPromise, X: finding.OtherHold,
			Sentence: "a later grant has a greater token",
			Text:     first + "; client $client requested it later, at $call, and got token $token"},
		tokenTwice: {Name: "twice", Class: property.BrokenPromise, X: finding.OtherHold,
			Sentence: "no two holds have the same token",
			Text:     first + "; client $client got the same token at $return"},
		tokenOfHolder: {Name: "order-of-holding", Class: property.BrokenPromise, X: finding.OtherHold,
			Sentence: "tokens grow in the order of the holds",
			Text:     first + " and held it until $until; the next holder, client $client, has token $token"},
		noToken: {Name: "no-token", Class: property.BrokenPromise, Sentence: "each grant of a fenced lock has a token",
			Text: "client $client was granted $lock at $start without a fencing token"},
		guardAccepted: {Name: "guard-accepted-old", Class: property.BrokenPromise, X: finding.AnOp, Sentence: guard,
			Text: "the guard of $lock accepted token $token of client $client at $return, although it had accepted token " +
				"$former at $since"},
		guardRefused: {Name: "guard-refused-current", Class: property.BrokenPromise, X: finding.AnOp, Sentence: guard,
			Text: "the guard of $lock refused token $token of client $client at $return, and no greater one had been presented"},
		readerRefused: {Name: "guard-refused-reader", Class: property.BrokenPromise, X: finding.AnOp,
			Sentence: "a guard accepts the token of a reader while it may read",
			Text: "the guard of $lock refused token $token of client $client at $return, which reads, after token $former of " +
				"another reader"},
		acceptedOld: {Name: "accepted-old"}, refusedCurrent: {Name: "refused-current"},
		grantExpired: {Name: "grant-expired"}, guardData: {Name: "data-changed"},
		notExclusive: {Name: "not-exclusive"},
	}
}

// fencingViolation puts a finding of [property.Fencing] into words.
func fencingViolation(v *bounds.View, f finding.Finding) property.Violation {
	if f.Rule == acceptedOld || f.Rule == refusedCurrent {
		return resourceViolation(v, f)
	}
	w, s := finding.Word(v, f, Rules()[f.Rule]), &v.H.Spans[f.Y]
	switch f.Rule {
	case tokenOrder:
		w.Events = []int{w.Events[0], int(s.Ended), int(s.Invoked)}
	case tokenTwice:
		w.Events = []int{w.Events[0], int(s.Ended)}
	case tokenOfHolder:
		w.Events = []int{w.Events[0], int(s.Ended)}
		if end := v.Holds[f.X].EndEvent; end >= 0 {
			w.Events = append(w.Events, int(end))
		}
	case readerRefused:
		w.Events = []int{int(v.H.Spans[f.X].Invoked), int(s.Invoked), int(s.Ended)}
	}
	return w
}

func resourceViolation(v *bounds.View, f finding.Finding) property.Violation {
	w, newest := touchViolation(v, f)
	t, who, key := &v.H.Touches[f.Y], w.Clients[len(w.Clients)-1], finding.LockName(w.Key)
	if f.Rule == acceptedOld {
		w.Rule = "an enforcing resource refuses a token older than one it has seen"
		w.Text = fmt.Sprintf("the resource guarded by %s accepted token %d of client %d at %s although it had seen token %d",
			key, t.Token, who, format.Instant(t.Time), newest)
		return w
	}
	w.Rule = "an enforcing resource accepts a token that is at least as new as any it has seen"
	w.Text = fmt.Sprintf("the resource guarded by %s refused token %d of client %d at %s although the newest that it "+
		"had seen was %d",
		key, t.Token, who, format.Instant(t.Time), newest)
	return w
}
