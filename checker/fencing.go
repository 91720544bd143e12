package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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

func fencingRules() []string {
	return []string{tokenOrder: "order", tokenTwice: "twice", tokenOfHolder: "order-of-holding",
		acceptedOld: "accepted-old", refusedCurrent: "refused-current", grantExpired: "grant-expired",
		guardAccepted: "guard-accepted-old", guardRefused: "guard-refused-current", guardData: "data-changed",
		readerRefused: "guard-refused-reader", noToken: "no-token", notExclusive: "not-exclusive"}
}

// checkFencing judges the two conditions of fencing: tokens that grow with every grant, and a resource that enforces
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
func checkFencing(v *view, o Options) Result {
	found := newFindings(o)
	tokens := 0
	for _, holds := range v.byKey {
		n, grow := v.tokensGrow(holds)
		if tokens += n; grow {
			continue
		}
		grants := make([]int32, 0, n)
		for _, i := range holds {
			if v.hasToken(i) {
				grants = append(grants, i)
			}
		}
		v.judgeTokens(grants, o.ClockError, found)
	}
	fenced := v.judgeResource(found)
	guarded := v.judgeGuards(o, found)
	if o.states(promise.Fenced) {
		v.withoutToken(found, o.states(promise.FencedReaders))
	}
	r := found.result(Fencing, v.fencingViolation)
	r.Counts = map[string]int64{"tokens": int64(tokens), "fenced_writes": int64(fenced)}
	if guarded > 0 {
		r.Counts["guarded"] = int64(guarded)
	}
	switch {
	case r.Outcome == Violated:
	case v.unjudged(func(s *history.Span) bool { return s.Token != 0 }):
		r.Outcome, r.Summary = Undecided, unknownHolds(v.unknownCounts)
	case tokens == 0 && fenced == 0 && guarded == 0:
		r.Outcome = NotApplicable
		r.Summary = noTokens
	default:
		r.Summary = fmt.Sprintf("%s in growing order, %s checked by an enforcing resource",
			format.Count(tokens, "token"), format.Count(fenced, "write"))
	}
	return r
}

// withoutToken finds the grants without a token. That of a reader may be hidden, unless the lock states that readers
// have one, and only the first of several keys has one.
func (v *view) withoutToken(found *findings, readers bool) {
	for i, s := range refs(v.h.Spans) {
		acquires := isAcquire(s.Op)
		if acquires && s.Outcome == history.OK && (s.Write || readers) && !s.Part && s.Token == 0 && !s.Zero &&
			v.h.Limit(s.Key) == 0 {
			found.add(finding{rule: noToken, x: none, y: i, start: s.Return, end: s.Return})
		}
	}
}

// tokensGrow counts the grants with tokens, and is a fast path: if tokens grow in the order in which grants returned,
// no pair violates a rule, because in each rule the first grant returned before the second.
func (v *view) tokensGrow(holds []int32) (tokens int, grow bool) {
	grow, last := true, uint64(0)
	for _, i := range holds {
		if !v.hasToken(i) {
			continue
		}
		token := v.holds[i].token
		grow = grow && (tokens == 0 || last < token)
		last = token
		tokens++
	}
	return tokens, grow
}

// hasToken reports whether a hold has a token. An inner hold has none of its own.
func (v *view) hasToken(i int32) bool {
	h := &v.holds[i]
	return !h.inner && (h.token != 0 || v.h.Spans[h.span].Zero)
}

// judgeTokens reports for each grant at most one earlier grant with which it violates a rule.
func (v *view) judgeTokens(grants []int32, slack time.Duration, found *findings) {
	byCall := v.sorted(grants, func(h *hold) time.Duration { return h.asked })
	guilty := make(map[int32]bool)
	report := func(rule int, x, y int32) {
		if !guilty[y] && !found.off.has(rule) {
			guilty[y] = true
			t := v.holds[y].from
			found.add(finding{rule: rule, x: x, y: v.holds[y].span, start: t, end: t})
		}
	}
	alone := func(i int32) bool { return !v.holds[i].reader && v.h.Limit(v.holds[i].key)|1 == 1 }
	before := v.greatestBefore(grants, byCall, func(x, y *hold) bool { return x.from < y.asked-slack })
	for n, y := range byCall {
		least := v.holds[y].token
		if v.holds[y].reader {
			least++
		}
		if x := before[n]; x >= 0 && v.holds[x].token >= least {
			report(tokenOrder, x, y)
		}
	}
	first := make(map[uint64]int32, len(grants))
	for _, y := range grants {
		x, twice := first[v.holds[y].token]
		switch {
		case twice && (alone(y) && (alone(x) || v.holds[x].from < v.holds[y].from) || found.off.has(notExclusive)):
			report(tokenTwice, x, y)
		case !twice || alone(y):
			first[v.holds[y].token] = y
		}
	}
	ordered := grants
	if !found.off.has(notExclusive) {
		ordered = slices.DeleteFunc(slices.Clone(grants), func(i int32) bool { return !alone(i) })
	}
	byEnd := v.sorted(ordered, func(h *hold) time.Duration { return h.until })
	before = v.greatestBefore(byEnd, ordered, func(x, y *hold) bool { // within one instant there is no order
		return x.until <= y.from-slack && x.from < y.from
	})
	for n, j := range ordered {
		y := &v.holds[j]
		x := before[n]
		if x >= 0 && v.holds[x].token > y.token && (y.promisedAt(y.from) || found.off.has(grantExpired)) {
			report(tokenOfHolder, x, j)
		}
	}
}

// sorted is a list of grants sorted by a time.
func (v *view) sorted(grants []int32, key func(*hold) time.Duration) []int32 {
	s := slices.Clone(grants)
	slices.SortStableFunc(s, func(i, j int32) int { return cmp.Compare(key(&v.holds[i]), key(&v.holds[j])) })
	return s
}

// greatestBefore is, for each grant of ys, the one of xs with the greatest token that comes before it; -1 if there is
// none. Both lists are sorted so that before is monotone.
func (v *view) greatestBefore(xs, ys []int32, before func(x, y *hold) bool) []int32 {
	greatest := make([]int32, len(ys))
	n, best := 0, int32(-1)
	for i, y := range ys {
		for n < len(xs) && before(&v.holds[xs[n]], &v.holds[y]) {
			if best < 0 || v.holds[xs[n]].token > v.holds[best].token {
				best = xs[n]
			}
			n++
		}
		greatest[i] = best
	}
	return greatest
}

// judgeResource examines the decisions of enforcing resources, and returns how many writes they checked.
func (v *view) judgeResource(found *findings) int {
	log := newTouchLog(len(v.h.Keys))
	fenced := 0
	for i, t := range refs(v.h.Touches) {
		newest, by := log.newest(t)
		log.add(i, t)
		if !t.Fenced {
			continue
		}
		fenced++
		switch {
		case t.Accepted && t.Token < newest:
			found.add(finding{rule: acceptedOld, x: by, y: i, start: t.Time, end: t.Time})
		case !t.Accepted && t.Token != 0 && t.Token >= newest:
			found.add(finding{rule: refusedCurrent, x: by, y: i, start: t.Time, end: t.Time})
		}
	}
	return fenced
}

// fencingWords are the wordings of the rules of fencing, except for the rules about a resource.
func fencingWords() map[int]wording {
	const (
		first = "client $other acquired $lock with token $former at $since"
		guard = "a guard accepts a token unless it has seen a greater one"
	)
	return map[int]wording{
		tokenOrder: {BrokenPromise, otherHold, "a later grant has a greater token",
			first + "; client $client requested it later, at $call, and got token $token"},
		tokenTwice: {BrokenPromise, otherHold, "no two holds have the same token",
			first + "; client $client got the same token at $return"},
		tokenOfHolder: {BrokenPromise, otherHold, "tokens grow in the order of the holds",
			first + " and held it until $until; the next holder, client $client, has token $token"},
		noToken: {BrokenPromise, nothing, "each grant of a fenced lock has a token",
			"client $client was granted $lock at $start without a fencing token"},
		guardAccepted: {BrokenPromise, anOp, guard,
			"the guard of $lock accepted token $token of client $client at $return, although it had accepted token $former " +
				"at $since"},
		guardRefused: {BrokenPromise, anOp, guard,
			"the guard of $lock refused token $token of client $client at $return, and no greater one had been presented"},
		readerRefused: {BrokenPromise, anOp, "a guard accepts the token of a reader while it may read",
			"the guard of $lock refused token $token of client $client at $return, which reads, after token $former of " +
				"another reader"},
	}
}

// fencingViolation puts a finding of [Fencing] into words.
func (v *view) fencingViolation(f finding) Violation {
	if f.rule == acceptedOld || f.rule == refusedCurrent {
		return v.resourceViolation(f)
	}
	w, s := v.word(f, fencingWords()[f.rule]), &v.h.Spans[f.y]
	switch f.rule {
	case tokenOrder:
		w.Events = []int{w.Events[0], int(s.Ended), int(s.Invoked)}
	case tokenTwice:
		w.Events = []int{w.Events[0], int(s.Ended)}
	case tokenOfHolder:
		w.Events = []int{w.Events[0], int(s.Ended)}
		if end := v.holds[f.x].endEvent; end >= 0 {
			w.Events = append(w.Events, int(end))
		}
	case readerRefused:
		w.Events = []int{int(v.h.Spans[f.x].Invoked), int(s.Invoked), int(s.Ended)}
	}
	return w
}

func (v *view) resourceViolation(f finding) Violation {
	w, newest := v.touchViolation(f)
	t, who, key := &v.h.Touches[f.y], w.Clients[len(w.Clients)-1], lockName(w.Key)
	if f.rule == acceptedOld {
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
