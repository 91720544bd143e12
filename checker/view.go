package checker

import (
	"cmp"
	"slices"
	"time"
	"unsafe"

	"github.com/lockchaos/lockchaos/history"
)

const never = history.Infinity

// view is a history as the checkers see it: holds instead of operations. It is
// made once per judgement, in linear time, and not changed afterwards.
type view struct {
	h          *history.History
	holds      []hold                    // in the order in which their acquires returned
	byKey      [][]int32                 // holds of each key, in that order; of two at the same time the one that ends first
	orphans    []int32                   // spans: releases that said ok although the owner held nothing
	renumbered []int32                   // spans: re-entries that told another token than their hold's
	regrants   []int32                   // spans: grants to who held the lock already
	parts      map[int32][]partialReturn // by hold: permits that were given back before the rest
	kind       LockKind                  // what the lock is meant to be
	usage      []usage                   // of each key
	ownerOrder []programOrder            // by owner: how well the order of its operations is known
	concurrent int                       // owners of order tangled
	owners     ownerIndex
	levels     []level // what owners did inside their holds
	counted    []int32 // spans: replies with a count that could be compared
	idleState
}

// ending says how a hold ended, as far as the owner knows.
type ending uint8

const (
	endOpen     ending = iota // it did not
	endReleased               // release ok
	endUnknown                // release of unknown outcome
	endLost                   // told lost, crashed, renewal or release refused: whatever is left of it is not relied on
)

// hold is one stay in the lock by one owner, from the outermost acquire to the
// outermost release. Reading and writing are holds of their own, also if one
// begins inside the other: a writer that takes the lock to read as well, and
// then gives its writing back, is a reader from there on. Of a semaphore each
// acquire is a hold.
type hold struct {
	asked            time.Duration // acquire invoked
	from             time.Duration // acquire returned: from here on it is certain
	until            time.Duration // end of belief: min(release invoked, loss told, crash)
	core             time.Duration // end of what a legal order must grant; later than until if release ok came after a loss was told
	freeBy           time.Duration // release returned; never if it is not bounded
	valid            time.Duration // end of the promise made with the acquire, as renewed without a gap
	laterPromises    []segment     // promises renewed after the one before had run out
	token            uint64
	key              int32
	owner            int32
	span             int32 // of the outermost acquire
	endEvent         int32 // index of the event that ended it; -1 if none did
	next             int32 // another hold of the same owner that is open, or -1
	depth            int32 // acquires not given back; of a semaphore permits
	failedReleases   int32 // releases that failed and left the lock as it was: the servers still count them
	ending           ending
	reader           bool
	inner            bool // begun inside a hold of the same owner that reads if this writes, or writes if this reads
	expiredOnArrival bool // its promise was over when the grant returned: a slow reply
}

// trait is something that owners of a key were seen to do.
type usage uint8

const (
	usageNested usage = 1 << iota // acquire again inside a hold
	usageMixed                    // the same, but to read where the hold writes, or to write
)

// segment is a stretch of time, [from, until).
type segment struct{ from, until time.Duration }

// newView makes a view of a lock that is whatever its history shows.
func newView(h *history.History) *view { return newViewAs(h, AnyKind) }

// newViewAs makes a view of a lock that is meant to be of a kind.
func newViewAs(h *history.History, kind LockKind) *view {
	v := &view{h: h, kind: kind}
	v.fold(false)
	for _, o := range v.ownerOrder {
		if o == concurrent {
			v.concurrent++
		}
	}
	v.byKey = group(len(h.Keys), v.holds)
	v.orderTies()
	return v
}

// fold finds the holds. Those of owners whose operations overlap are left out, unless all are wanted.
func (v *view) fold(all bool) {
	h := v.h
	var marks []int32
	room := inBackground(func() { v.holds = prefault(countGrants(h)) })
	order := inBackground(func() { marks = effectOrder(h) })
	v.ownerOrder = orders(h)
	b := holdFold{openHolds: newOpenHolds(v, len(h.Owners)), lostOwners: make(map[int32]bool), all: all}
	v.usage = make([]usage, len(h.Keys))
	room()
	order()
	for _, e := range marks {
		switch {
		case e == noEffect:
		case e < 0:
			b.notice(&h.Notices[-e-1])
		default:
			b.span(e, &h.Spans[e])
		}
	}
}

// aside does something on another goroutine. Whoever calls what it returns waits
// for the end of it, and panics if it did.
func inBackground(do func()) (wait func()) {
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		do()
	}()
	return func() {
		if cause := <-ended; cause != nil {
			panic(cause)
		}
	}
}

// touched is room for n holds, into every page of which something was written:
// half of the time of making holds is the system's, which finds that memory, and
// that can be spent on another processor.
func prefault(n int) []hold {
	const page = 4096 / int(unsafe.Sizeof(hold{}))
	holds := make([]hold, n)
	for i := 0; i < n; i += page {
		holds[i].span = 0
	}
	return holds[:0]
}

// grants is how many holds there can be.
func countGrants(h *history.History) (n int) {
	for i := range h.Spans {
		if s := &h.Spans[i]; s.Outcome == history.OK && (s.Op == history.OpAcquire || s.Op == history.OpTry) {
			n++
		}
	}
	return n
}

// isLockOp says that s takes or gives the lock.
func isLockOp(s *history.Span) bool {
	return s.Op == history.OpAcquire || s.Op == history.OpTry || s.Op == history.OpRelease
}

// order says what is known about the order of one owner's operations.
type programOrder uint8

const (
	sequential   programOrder = iota // one after the other
	afterUnknown                     // some came after one of unknown outcome, which may still take effect
	concurrent                       // two at once: what its holds are cannot be told, and they are not judged
)

// orders finds the owners whose operations were not one after the other. For
// all others program order is known, which the exactness of the interval sweeps
// rests upon (see exclusion.go). An owner that acquires after a release of
// unknown outcome is tangled: that release may arrive late and end the new hold.
func orders(h *history.History) []programOrder {
	of := make([]programOrder, len(h.Owners))
	ends := make([]int32, len(h.Owners))           // latest completion of a known outcome
	unknown := make([]programOrder, len(h.Owners)) // what an acquire is, after those of unknown outcome so far
	for i := range h.Spans {
		s := &h.Spans[i]
		if !isLockOp(s) {
			continue
		}
		o, release := &of[s.Owner], s.Op == history.OpRelease
		switch {
		case s.Invoked < ends[s.Owner]:
			*o = concurrent
		case release || s.Outcome == history.Fail:
			*o = max(*o, min(afterUnknown, unknown[s.Owner]))
		default:
			*o = max(*o, unknown[s.Owner])
		}
		switch {
		case s.Outcome != history.Info:
			ends[s.Owner] = max(ends[s.Owner], s.Ended)
		case release:
			unknown[s.Owner] = concurrent
		default:
			unknown[s.Owner] = max(unknown[s.Owner], afterUnknown)
		}
	}
	return of
}

// nothing is the content of an event without an effect, see effects.
const noEffect = int32(-1 << 31)

// effects is the order in which spans and notices changed what owners could
// believe: a grant counts when it returned, a release when it was invoked.
// A span is its number, a notice is -1 minus its number. Every event has one
// place, so that no comparison is needed; places without an effect hold nothing.
func effectOrder(h *history.History) []int32 {
	count, top := 0, int32(-1)
	eachEffect(h, func(at, _ int32) {
		count++
		top = max(top, at)
	})
	if int(top) > 8*count+1024 { // far between: the numbering has gaps
		return sparseEffectOrder(h, count)
	}
	slots := make([]int32, top+1)
	for i := range slots {
		slots[i] = noEffect
	}
	eachEffect(h, func(at, what int32) { slots[at] = what })
	return slots
}

func eachEffect(h *history.History, visit func(at, what int32)) {
	for i := range h.Spans {
		s := &h.Spans[i]
		at := int32(-1)
		switch s.Op {
		case history.OpRelease:
			at = s.Invoked
		case history.OpAcquire, history.OpTry, history.OpRenew:
			at = s.Ended
		}
		if at >= 0 {
			visit(at, int32(i))
		}
	}
	for i := range h.Notices {
		if n := &h.Notices[i]; n.Index >= 0 {
			visit(n.Index, int32(-i-1))
		}
	}
}

func sparseEffectOrder(h *history.History, count int) []int32 {
	type mark struct{ at, what int32 }
	marks := make([]mark, 0, count)
	eachEffect(h, func(at, what int32) { marks = append(marks, mark{at, what}) })
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	order := make([]int32, 0, count)
	for _, m := range marks {
		order = append(order, m.what)
	}
	return order
}

// group sorts holds by key, by counting, and keeps their order.
func group(keys int, holds []hold) [][]int32 {
	count := make([]int32, keys+1)
	for i := range holds {
		count[holds[i].key+1]++
	}
	for k := range keys {
		count[k+1] += count[k]
	}
	all := make([]int32, len(holds))
	next := slices.Clone(count)
	for i := range holds {
		k := holds[i].key
		all[next[k]] = int32(i)
		next[k]++
	}
	byKey := make([][]int32, keys)
	for k := range keys {
		byKey[k] = all[count[k]:count[k+1]]
	}
	return byKey
}

// orderTies puts holds that began in the same instant in the only order that can
// be legal: those of no length first, and of these the smallest token.
func (v *view) orderTies() {
	for _, holds := range v.byKey {
		for i := 0; i < len(holds); {
			j := i + 1
			for j < len(holds) && v.holds[holds[j]].from == v.holds[holds[i]].from {
				j++
			}
			if j > i+1 {
				slices.SortStableFunc(holds[i:j], func(a, b int32) int {
					x, y := &v.holds[a], &v.holds[b]
					return cmp.Or(cmp.Compare(x.core, y.core), cmp.Compare(x.orderingToken(), y.orderingToken()))
				})
			}
			i = j
		}
	}
}

func (v *view) client(span int32) int {
	return v.h.Spans[span].Process.Client(v.h.Clients)
}

// granted is the event that told the owner of its hold.
func (v *view) granted(h *hold) int { return int(v.h.Spans[h.span].Ended) }
