package checker

import (
	"maps"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// latchKey is the history of one latch.
type latchKey struct {
	armings []arming
	unknown time.Duration // the first arm of unknown outcome was invoked, or one without a generation; never: none
	uses    []int32       // spans: operations that are judged
	deletes []segment     // deletes that did or may succeed: from the call to the return
}

// arming is one generation of a latch: an arm that succeeded. opens is the earliest instant at which it can have been
// open, opened the instant by which it was certainly open; never if nothing shows it.
type arming struct {
	span          int32
	call, back    time.Duration
	opens, opened time.Duration
	// instants by which participants may have, or certainly have, counted it down, in order, and the instants of each
	// participant
	possible, certain []time.Duration
	counted           map[int32]time.Duration

	deleted time.Duration // the earliest return of a delete that was invoked after it was armed; never: there is none
	after   int           // 1 + the index of the delete that certainly came before it was armed; 0: unknown
}

// latches are the latches of the history, by key; nil if there are none.
func (v *view) latches() map[int32]*latchKey {
	var all map[int32]*latchKey
	counts := make(map[int32][]int32)
	for i, s := range refsAt(v.h.Spans, v.rare) {
		if !isLatchOp(s.Op) && (s.Op != history.OpInspect || all[s.Key] == nil) {
			continue
		}
		if all == nil {
			all = make(map[int32]*latchKey)
		}
		l := all[s.Key]
		if l == nil {
			l = &latchKey{unknown: never}
			all[s.Key] = l
		}
		if s.Op == history.OpDelete {
			if s.Outcome != history.Fail {
				l.deletes = append(l.deletes, segment{s.Call, s.Return})
			}
			continue
		}
		if s.Op == history.OpCountDown && s.Outcome != history.Fail {
			counts[s.Key] = append(counts[s.Key], i)
		}
		switch {
		case s.Op == history.OpArm && s.Outcome != history.Fail && (s.Outcome == history.Info || s.Token == 0):
			l.unknown = min(l.unknown, s.Call)
		case s.Op == history.OpArm && s.Outcome == history.OK:
			l.armings = append(l.armings, arming{span: i, call: s.Call, back: s.Return})
		}
		if s.Outcome != history.Info {
			l.uses = append(l.uses, i)
		}
	}
	for key, l := range all { // order does not matter
		v.findOpenings(l, counts[key])
		l.orderDeletes()
	}
	return all
}

// isLatchOp reports whether only latches have an operation.
func isLatchOp(op history.Op) bool {
	switch op {
	case history.OpArm, history.OpCountDown, history.OpAwait, history.OpDelete:
		return true
	}
	return false
}

// mayBeDeleted reports whether a generation can have been deleted by t.
func (l *latchKey) mayBeDeleted(a *arming, t time.Duration) bool {
	_, may := l.deletedBy(a, t)
	return may
}

// deletedBy finds the delete that can have deleted a generation by t, as an index into deletes, and reports whether
// there is one; -1: there are several.
func (l *latchKey) deletedBy(a *arming, t time.Duration) (n int, found bool) {
	for i, d := range l.deletes {
		if d.until < a.call || d.from > t || i == a.after-1 {
			continue
		}
		if found {
			return -1, true
		}
		n, found = i, true
	}
	return n, found
}

// orderDeletes finds the delete that certainly came before a generation was armed: the one before it was counting until
// then, and only that delete can have ended it. A delete has one effect, so it cannot have deleted the new generation
// too.
func (l *latchKey) orderDeletes() {
	for n, a := range refs(l.armings) {
		later := l.armings[n+1:] // in the order of their calls
		i := slices.IndexFunc(later, func(b arming) bool { return b.call > a.back })
		if i < 0 || a.opens <= later[i].back {
			continue
		}
		b := &later[i]
		if d, found := l.deletedBy(a, b.back); found && d >= 0 {
			b.after = d + 1
			l.deletes[d].until = min(l.deletes[d].until, b.back)
		}
	}
}

// findOpenings finds when each generation can have opened, and by when it has, or was deleted. A participant counts
// once. A count-down counts at its invocation at the earliest and, if it succeeded with this generation, at its return
// at the latest. An arm that succeeded after the generation was armed, with no delete between them, shows that it was
// open by then.
func (v *view) findOpenings(l *latchKey, counts []int32) {
	byToken := make(map[uint64][]int32) // 0: may have counted for any generation
	for i, s := range refsAt(v.h.Spans, counts) {
		byToken[s.Token] = append(byToken[s.Token], i)
	}
	slices.SortFunc(l.armings, func(a, b arming) int { return int(a.span) - int(b.span) })
	for n := len(l.armings) - 1; n >= 0; n-- {
		a := &l.armings[n]
		s := &v.h.Spans[a.span]
		first, last := make(map[int32]time.Duration), make(map[int32]time.Duration)
		for _, c := range refsAt(v.h.Spans, slices.Concat(byToken[s.Token], byToken[0])) {
			if at, known := first[c.Owner]; !known || c.Call < at {
				first[c.Owner] = c.Call
			}
			if at, known := last[c.Owner]; c.Token == s.Token && c.Outcome == history.OK && (!known || c.Return < at) {
				last[c.Owner] = c.Return
			}
		}
		a.possible, a.certain = slices.Sorted(maps.Values(first)), slices.Sorted(maps.Values(last))
		a.opens, a.opened, a.counted = max(a.call, nth(a.possible, s.Asked)), nth(a.certain, s.Asked), last
		next := never // the earliest return of the arms that were invoked after a returned
		for _, b := range l.armings[n+1:] {
			if b.call > a.back && !l.mayBeDeleted(a, b.back) {
				next = min(next, b.back)
			}
			if b.call > next {
				break
			}
		}
		a.opened, a.deleted = min(a.opened, next), never
		for _, d := range l.deletes {
			if d.from > a.back {
				a.deleted = min(a.deleted, d.until)
			}
		}
	}
}

// nth is the n-th of some times in order; never if there are fewer.
func nth(times []time.Duration, n int32) time.Duration {
	switch {
	case n <= 0:
		return 0
	case len(times) < int(n):
		return never
	}
	return times[n-1]
}

// current are the generations that may have been the present one at some instant of s: armed by its end, and not
// certainly followed by another one before it.
func (l *latchKey) current(s segment) (found []*arming) {
	var over time.Duration // the latest invocation of an arm that returned before s
	for _, a := range refs(l.armings) {
		if a.back < s.from {
			over = max(over, a.call)
		}
	}
	for _, a := range refs(l.armings) {
		if a.call <= s.until && a.back >= over {
			found = append(found, a)
		}
	}
	return found
}

// generationsOf are the generations that an operation can mean: the generation that it names or, if it names none, the
// ones current while it was in flight.
func (v *view) generationsOf(l *latchKey, i int32) []*arming {
	s := &v.h.Spans[i]
	if s.Token == 0 {
		return l.current(segment{s.Call, s.Return})
	}
	var found []*arming
	for _, a := range refs(l.armings) {
		if v.h.Spans[a.span].Token == s.Token && a.call <= s.Return {
			found = append(found, a)
		}
	}
	return found
}

// countsAt reports whether the generation was certainly armed and not open at t.
func (a *arming) countsAt(t time.Duration) bool { return a.back <= t && a.opens > t }

// awaits counts the awaits with an answer, and the awaits that had to wait: the latch was certainly counting when they
// were invoked.
func (v *view) awaits(all map[int32]*latchKey) (total, waited int) {
	for _, l := range all { // order does not matter
		for i, s := range refsAt(v.h.Spans, l.uses) {
			if s.Op != history.OpAwait {
				continue
			}
			total++
			if slices.ContainsFunc(v.generationsOf(l, i), func(a *arming) bool { return a.countsAt(s.Call) }) {
				waited++
			}
		}
	}
	return total, waited
}
