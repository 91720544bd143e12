package latch

import (
	"maps"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
)

// latchKey is the history of one latch.
type latchKey struct {
	Armings []Arming
	unknown time.Duration     // the first arm of unknown outcome was invoked, or one without a generation; never: none
	uses    []int32           // spans: operations that are judged
	deletes []segment.Segment // deletes that did or may succeed: from the call to the return
}

// Arming is one generation of a latch: an arm that succeeded. opens is the earliest instant at which it can have been
// open, opened the instant by which it was certainly open; never if nothing shows it.
type Arming struct {
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

// Latches are the latches of the history, by key; nil if there are none.
func Latches(v *bounds.View) map[int32]*latchKey {
	var all map[int32]*latchKey
	counts := make(map[int32][]int32)
	for i, s := range refs.At(v.H.Spans, v.Rare) {
		if !IsLatchOp(s.Op) && (s.Op != history.OpInspect || all[s.Key] == nil) {
			continue
		}
		if all == nil {
			all = make(map[int32]*latchKey)
		}
		l := all[s.Key]
		if l == nil {
			l = &latchKey{unknown: segment.Never}
			all[s.Key] = l
		}
		if s.Op == history.OpDelete {
			if s.Outcome != history.Fail {
				l.deletes = append(l.deletes, segment.Of(s.Call, s.Return))
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
			l.Armings = append(l.Armings, Arming{span: i, call: s.Call, back: s.Return})
		}
		if s.Outcome != history.Info {
			l.uses = append(l.uses, i)
		}
	}
	for key, l := range all { // order does not matter
		findOpenings(v, l, counts[key])
		l.orderDeletes()
	}
	return all
}

// IsLatchOp reports whether only latches have an operation.
func IsLatchOp(op history.Op) bool {
	switch op {
	case history.OpArm, history.OpCountDown, history.OpAwait, history.OpDelete:
		return true
	}
	return false
}

// MayBeDeleted reports whether a generation can have been deleted by t.
func (l *latchKey) MayBeDeleted(a *Arming, t time.Duration) bool {
	_, may := l.deletedBy(a, t)
	return may
}

// deletedBy finds the delete that can have deleted a generation by t, as an index into deletes, and reports whether
// there is one; -1: there are several.
func (l *latchKey) deletedBy(a *Arming, t time.Duration) (n int, found bool) {
	for i, d := range l.deletes {
		if d.Until < a.call || d.From > t || i == a.after-1 {
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
	for n, a := range refs.All(l.Armings) {
		later := l.Armings[n+1:] // in the order of their calls
		i := slices.IndexFunc(later, func(b Arming) bool { return b.call > a.back })
		if i < 0 || a.opens <= later[i].back {
			continue
		}
		b := &later[i]
		if d, found := l.deletedBy(a, b.back); found && d >= 0 {
			b.after = d + 1
			l.deletes[d].Until = min(l.deletes[d].Until, b.back)
		}
	}
}

// findOpenings finds when each generation can have opened, and by when it has, or was deleted. A participant counts
// once. A count-down counts at its invocation at the earliest and, if it succeeded with this generation, at its return
// at the latest. An arm that succeeded after the generation was armed, with no delete between them, shows that it was
// open by then.
func findOpenings(v *bounds.View, l *latchKey, counts []int32) {
	byToken := make(map[uint64][]int32) // 0: may have counted for any generation
	for i, s := range refs.At(v.H.Spans, counts) {
		byToken[s.Token] = append(byToken[s.Token], i)
	}
	slices.SortFunc(l.Armings, func(a, b Arming) int { return int(a.span) - int(b.span) })
	for n := len(l.Armings) - 1; n >= 0; n-- {
		a := &l.Armings[n]
		s := &v.H.Spans[a.span]
		first, last := make(map[int32]time.Duration), make(map[int32]time.Duration)
		for _, c := range refs.At(v.H.Spans, slices.Concat(byToken[s.Token], byToken[0])) {
			if at, known := first[c.Owner]; !known || c.Call < at {
				first[c.Owner] = c.Call
			}
			if at, known := last[c.Owner]; c.Token == s.Token && c.Outcome == history.OK && (!known || c.Return < at) {
				last[c.Owner] = c.Return
			}
		}
		a.possible, a.certain = slices.Sorted(maps.Values(first)), slices.Sorted(maps.Values(last))
		a.opens, a.opened, a.counted = max(a.call, nth(a.possible, s.Asked)), nth(a.certain, s.Asked), last
		next := segment.Never // the earliest return of the arms that were invoked after a returned
		for _, b := range l.Armings[n+1:] {
			if b.call > a.back && !l.MayBeDeleted(a, b.back) {
				next = min(next, b.back)
			}
			if b.call > next {
				break
			}
		}
		a.opened, a.deleted = min(a.opened, next), segment.Never
		for _, d := range l.deletes {
			if d.From > a.back {
				a.deleted = min(a.deleted, d.Until)
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
		return segment.Never
	}
	return times[n-1]
}

// current are the generations that may have been the present one at some instant of s: armed by its end, and not
// certainly followed by another one before it.
func (l *latchKey) current(s segment.Segment) (found []*Arming) {
	var over time.Duration // the latest invocation of an arm that returned before s
	for _, a := range refs.All(l.Armings) {
		if a.back < s.From {
			over = max(over, a.call)
		}
	}
	for _, a := range refs.All(l.Armings) {
		if a.call <= s.Until && a.back >= over {
			found = append(found, a)
		}
	}
	return found
}

// generationsOf are the generations that an operation can mean: the generation that it names or, if it names none, the
// ones current while it was in flight.
func generationsOf(v *bounds.View, l *latchKey, i int32) []*Arming {
	s := &v.H.Spans[i]
	if s.Token == 0 {
		return l.current(segment.Of(s.Call, s.Return))
	}
	var found []*Arming
	for _, a := range refs.All(l.Armings) {
		if v.H.Spans[a.span].Token == s.Token && a.call <= s.Return {
			found = append(found, a)
		}
	}
	return found
}

// CountsAt reports whether the generation was certainly armed and not open at t.
func (a *Arming) CountsAt(t time.Duration) bool { return a.back <= t && a.opens > t }

// Awaits counts the awaits with an answer, and the awaits that had to wait: the latch was certainly counting when they
// were invoked.
func Awaits(v *bounds.View, all map[int32]*latchKey) (total, waited int) {
	for _, l := range all { // order does not matter
		for i, s := range refs.At(v.H.Spans, l.uses) {
			if s.Op != history.OpAwait {
				continue
			}
			total++
			if slices.ContainsFunc(generationsOf(v, l, i), func(a *Arming) bool { return a.CountsAt(s.Call) }) {
				waited++
			}
		}
	}
	return total, waited
}
