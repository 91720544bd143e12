package checker

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/kept"
	"github.com/lockchaos/lockchaos/promise"
)

const never = history.Infinity

// view is a history as the checkers use it, with holds instead of operations. It is made once for each judgement, in
// linear time, and not changed afterwards.
type view struct {
	h             *history.History
	holds         []hold                    // in the order of their grants
	rare          []int32                   // see rareSpans
	lapses        *lapses                   // see findLapses
	byKey         [][]int32                 // holds of each key in that order; at one instant by end
	orphans       []int32                   // spans: releases that succeeded without a hold
	renumbered    []int32                   // spans: re-entries with another token than their hold's
	regrants      []int32                   // spans: grants to an owner that already held the lock
	carried       []int32                   // spans: grants requested inside a hold that was lost before the reply
	parts         map[int32][]partialReturn // by hold: permits that were returned before the rest
	promised      map[int32]time.Duration   // by span: core of a lost hold that ended before that was known
	leaseStarts   map[int32]LeaseStart      // by span, see countLeases
	unrenewed     []*history.Span           // renewals that were refused: the hold is lost
	kind          LockKind                  // see [Options.LockKind]
	quorum        bool                      // several servers decide about a key
	fair          bool                      // the lock queues its waiters
	poll          time.Duration             // see [Options.Poll]
	usage         []usage                   // by key
	ownerOrder    []programOrder            // by owner
	issueOrder    []programOrder            // the same by the invocations alone, whatever the replies were
	unknownWhy    []unknownCause            // by owner: why its holds are unknown, if they are
	unknownOwners int                       // number of owners whose holds are unknown
	unknownCounts [unknownCauses]int        // the same, by cause
	levels        []level                   // operations of owners inside their holds
	counted       []int32                   // spans: replies with a hold count that can be compared

	// computed when needed, once
	byOwner       func() *ownerHolds             // see orderByOwner
	freeTimes     func() *freeTimes              // see findFreeTimes
	clientPauses  func() map[int][]segment       // see findPauses
	clientStalls  func() map[int][]segment       // see findStalls
	renewalStops  func() map[int][]segment       // see findRenewalStops
	completed     func() map[int32]time.Duration // see findCompleted
	multiAcquires func() map[int32][]int32       // see findMultiAcquires
	faultTimes    func() []faultTime             // see findFaults
	silences      func() []faultTime             // see findSilences
	resizes       func() map[int32]resized       // see findResizes
	samples       func() *nodeSamples            // see readSamples
	kept          func() *kept.Values            // whose hold each value at a server is; nil: no samples can be read
	records       func() *nodeSamples            // see readRecords
	homes         func() []string                // see findHomes
	longestSpan   func() time.Duration           // see findLongestSpan
	forced        func() map[int32][]int32       // see findForced
}

// ending is how a hold ended, as far as its owner knows.
type ending uint8

const (
	endOpen     ending = iota // not at all
	endReleased               // released
	endUnknown                // by a release of unknown outcome
	endLost                   // loss reported, client crashed, renewal or release refused, or released by force
)

// hold is one owner's possession of a lock, see [Hold]. A writer that acquires the lock as a reader as well, and then
// releases it as a writer, is a reader from then on.
type hold struct {
	asked            time.Duration // acquire invoked
	from             time.Duration // acquire returned: from here on it is certain
	until            time.Duration // end of belief: the first of release invoked, loss reported and crash
	core             time.Duration // end of the part in every legal order; after until if the loss was not real
	freeBy           time.Duration // release returned, or one by force; never if that is unknown
	valid            time.Duration // end of the promise made with the grant, with all renewals that came in time
	extras           *holdExtra    // see extra and mutableExtra; nil: all zero
	token            uint64
	key              int32
	owner            int32
	span             int32 // the outermost acquire
	endEvent         int32 // index of the event that ended belief; -1 if none did
	next             int32 // another open hold of the same owner, or -1
	depth            int32 // acquires that were not released; of a semaphore permits
	ending           ending
	reader           bool
	inner            bool // begun inside a hold of the same owner in the other mode
	ambiguous        bool // a release without a mode may have been of this one, or of one in the other mode
	expiredOnArrival bool // its promise had ended when the grant returned, because the reply was slow
	remains          bool // requested while servers may have kept a hold that was lost: they may keep that one
}

// usage is the operations that owners of a key were seen to use.
type usage uint8

const (
	usageNested usage = 1 << iota // acquire it again inside a hold
	usageMixed                    // the same, in the other mode: to read inside a write, or to write inside a read
)

// segment is an interval, [from, until).
type segment struct{ from, until time.Duration }

// text is "for 3.00 s (1.000 s to 4.000 s)", or "at 4.000 s" if it has no length, as at the end of a history.
func (s segment) text() string {
	if s.until == s.from {
		return "at " + format.Instant(s.from)
	}
	return fmt.Sprintf("for %s (%s to %s)", format.Duration(s.until-s.from), format.Instant(s.from),
		format.Instant(s.until))
}

// bareView is a view without holds.
func bareView(h *history.History, o Options) *view {
	o.off = disabledRules{} // rules of one property do not belong to all
	v := &view{h: h, kind: o.kind(), quorum: o.MayBeDown > 0, fair: o.states(promise.Fair), poll: o.poll(),
		parts: make(map[int32][]partialReturn), promised: make(map[int32]time.Duration),
		leaseStarts: make(map[int32]LeaseStart)}
	v.byOwner = sync.OnceValue(v.orderByOwner)
	v.freeTimes = sync.OnceValue(func() *freeTimes { return v.findFreeTimes(o.slack()) })
	v.renewalStops = sync.OnceValue(func() map[int][]segment { return v.findRenewalStops(o) })
	v.clientPauses, v.clientStalls = sync.OnceValue(v.findPauses), sync.OnceValue(v.findStalls)
	v.completed, v.silences = sync.OnceValue(v.findCompleted), sync.OnceValue(v.findSilences)
	v.multiAcquires, v.faultTimes = sync.OnceValue(v.findMultiAcquires), sync.OnceValue(v.findFaults)
	v.resizes, v.samples = sync.OnceValue(v.findResizes), sync.OnceValue(func() *nodeSamples { return v.readSamples(o) })
	v.kept = sync.OnceValue(func() *kept.Values { return v.readKept(o.values) })
	v.records = sync.OnceValue(func() *nodeSamples { return v.readRecords(o) })
	v.longestSpan, v.forced = sync.OnceValue(v.findLongestSpan), sync.OnceValue(v.findForced)
	v.homes = sync.OnceValue(func() []string { return v.findHomes(o.NodeTimeout) })
	return v
}

// newView makes a view of a lock. It uses only the options that the lock and its servers state, Slack and ReportDelay.
func newView(h *history.History, o Options) *view {
	v := bareView(h, o)
	v.fold(false)
	v.countLeases(o)
	v.endStalled()
	v.endReported(o.ReportDelay)
	for owner, o := range v.ownerOrder {
		if o == ordUnknown {
			v.unknownOwners++
			v.unknownCounts[v.unknownWhy[owner]]++
		}
	}
	v.byKey = group(len(h.Keys), v.holds)
	v.orderTies()
	return v
}

// fold finds the holds. Unless all is set, it skips owners whose program order is ordUnknown.
func (v *view) fold(all bool) {
	h := v.h
	var marks []int32
	v.rare = rareSpans(h)
	v.lapses = v.findLapses()
	room := inBackground(func() { v.holds = prefault(countGrants(h)) })
	order := inBackground(func() { marks = effectOrder(h) })
	v.ownerOrder, v.unknownWhy = orders(h)
	v.issueOrder = slices.Clone(v.ownerOrder)
	b := holdFold{openHolds: newOpenHolds(v, len(h.Owners)), lostOwners: make(map[int32]bool),
		hasLost: make(map[ownerKey]bool), clients: byClient{of: make(map[int][]int32)}, all: all,
		modeUnknown: make(map[ownerKey]bool), kept: make(map[ownerKey]keptLevels), effects: make(map[int32]time.Duration)}
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
	b.forcedUnknown()
}

// inBackground calls do on another goroutine. The function that it returns waits for the end, and panics if do did.
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

// prefault allocates room for n holds and writes to each page of it. Half of the time of finding holds is the
// operating system's, which maps that memory; so it is spent on another processor.
func prefault(n int) []hold {
	const page = 4096 / int(unsafe.Sizeof(hold{}))
	holds := make([]hold, n)
	for i := 0; i < n; i += page {
		holds[i].span = 0
	}
	return holds[:0]
}

// countGrants is the largest possible number of holds.
func countGrants(h *history.History) (n int) {
	for _, s := range refs(h.Spans) {
		if s.Outcome == history.OK && isAcquire(s.Op) {
			n++
		}
	}
	return n
}

// rareSpans are the spans that most rules are about: all but acquires to write and releases that succeeded or, for
// a reason that is no flag of theirs, failed. So a rule about other operations, unknown outcomes or flags does not read
// every span.
func rareSpans(h *history.History) (rare []int32) {
	for i, s := range refs(h.Spans) {
		common := s.Op == history.OpAcquire && s.Write || s.Op == history.OpRelease
		flagged := s.Busy || s.Behind || s.Held || s.Undone || s.Denied || s.Lapsed || s.Expired || s.Zero || s.Absent ||
			s.Part
		if !common || flagged || s.Outcome == history.Info {
			rare = append(rare, i)
		}
	}
	return rare
}

// hasRare reports whether one of the rare spans is so.
func (v *view) hasRare(is func(*history.Span) bool) bool {
	return slices.ContainsFunc(v.rare, func(i int32) bool { return is(&v.h.Spans[i]) })
}

// isAcquire reports whether an operation asks for the lock.
func isAcquire(op history.Op) bool { return op == history.OpAcquire || op == history.OpTry }

// isLockOp reports whether s acquires or releases the lock.
func isLockOp(s *history.Span) bool { return isAcquire(s.Op) || s.Op == history.OpRelease }

// unjudged reports whether an owner whose holds are unknown was granted an acquire for which is holds: then it is not
// certain that a property does not apply.
func (v *view) unjudged(is func(*history.Span) bool) bool {
	return v.unknownOwners > 0 && slices.ContainsFunc(v.h.Spans, func(s history.Span) bool {
		acquires := isAcquire(s.Op)
		return acquires && s.Outcome == history.OK && v.ownerOrder[s.Owner] == ordUnknown && is(&s)
	})
}

// programOrder is the certainty of the order of one owner's operations.
type programOrder uint8

const (
	ordSequential   programOrder = iota // one after the other
	ordAfterUnknown                     // some followed one of unknown outcome, which may still take effect
	ordUnknown                          // which holds it had is unknown, so they are not judged: see unknownCause
)

// orders finds the program order of each owner. It is known for ordSequential, and the exactness of the interval
// sweeps depends on it (see exclusion.go). An owner that acquires after a release of unknown outcome has the
// order ordUnknown: that release may arrive late and end the new hold.
func orders(h *history.History) ([]programOrder, []unknownCause) {
	of, why := make([]programOrder, len(h.Owners)), make([]unknownCause, len(h.Owners))
	ends := make([]int32, len(h.Owners))           // latest completion of known outcome
	unknown := make([]programOrder, len(h.Owners)) // the order after the next acquire
	for _, s := range refs(h.Spans) {
		if !isLockOp(s) {
			continue
		}
		o, release := &of[s.Owner], s.Op == history.OpRelease
		switch {
		case s.Invoked < ends[s.Owner] && !s.Part:
			*o, why[s.Owner] = ordUnknown, twoAtOnce
		case release || s.Outcome == history.Fail:
			*o = max(*o, min(ordAfterUnknown, unknown[s.Owner]))
		default:
			if unknown[s.Owner] == ordUnknown && *o != ordUnknown {
				why[s.Owner] = lateRelease
			}
			*o = max(*o, unknown[s.Owner])
		}
		switch {
		case s.Outcome != history.Info:
			ends[s.Owner] = max(ends[s.Owner], s.Ended)
		case release:
			unknown[s.Owner] = ordUnknown
		default:
			unknown[s.Owner] = max(unknown[s.Owner], ordAfterUnknown)
		}
	}
	return of, why
}

// noEffect stands for an event without an effect, see effectOrder.
const noEffect = int32(-1 << 31)

// effectOrder is the order in which spans and notices changed the beliefs of owners: a grant counts when it returned, a
// release when it was invoked. A span is its index, a notice is -1 minus its index. Each event index is a slot of its
// own, so that nothing has to be sorted; slots without an effect hold noEffect.
func effectOrder(h *history.History) []int32 {
	count, top := 0, int32(-1)
	eachEffect(h, func(at, _ int32) {
		count++
		top = max(top, at)
	})
	if int(top) > 8*count+1024 { // the indices have large gaps
		return sparseEffectOrder(h, count)
	}
	slots := slices.Repeat([]int32{noEffect}, int(top+1))
	eachEffect(h, func(at, effect int32) { slots[at] = effect })
	return slots
}

func eachEffect(h *history.History, visit func(at, effect int32)) {
	for i, s := range refs(h.Spans) {
		at := int32(-1)
		switch s.Op {
		case history.OpRelease:
			at = s.Invoked
		case history.OpAcquire, history.OpTry, history.OpRenew:
			at = s.Ended
		case history.OpForceRelease:
			if s.Outcome == history.OK {
				at = s.Ended
			}
		}
		if at >= 0 {
			visit(at, i)
		}
	}
	for i, n := range refs(h.Notices) {
		if n.Index >= 0 {
			visit(n.Index, -i-1)
		}
	}
}

func sparseEffectOrder(h *history.History, count int) []int32 {
	type mark struct{ at, effect int32 }
	marks := make([]mark, 0, count)
	eachEffect(h, func(at, effect int32) { marks = append(marks, mark{at, effect}) })
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	order := make([]int32, 0, count)
	for _, m := range marks {
		order = append(order, m.effect)
	}
	return order
}

// group are the holds of each key, in their order.
func group(keys int, holds []hold) [][]int32 {
	all, first := countingSort(keys, len(holds), func(i int32) int32 { return holds[i].key })
	byKey := make([][]int32, keys)
	for k := range keys {
		byKey[k] = all[first[k]:first[k+1]]
	}
	return byKey
}

// orderTies puts holds that began at the same instant into the only order that can be legal: by end, then by token.
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

func (v *view) client(span int32) int { return v.h.Spans[span].Process.Client(v.h.Clients) }

// granted is the index of the event that completed the acquire.
func (v *view) granted(h *hold) int { return int(v.h.Spans[h.span].Ended) }
