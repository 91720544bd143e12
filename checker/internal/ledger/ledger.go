// Package ledger folds a history into holds: which owner had which key, since when, until when, and what it was
// promised.
package ledger

import (
	"cmp"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/kept"
	"github.com/lockchaos/lockchaos/promise"
)

// View is a history as the checkers use it, with holds instead of operations. It is made once for each judgement,
// in linear time, and not changed afterwards.
type View struct {
	*excuse.View

	Holds         []Hold                        // in the order of their grants
	Rare          []int32                       // see rareSpans
	Lapses        *lapses                       // see findLapses
	ByKey         [][]int32                     // holds of each key in that order; at one instant by end
	Orphans       []int32                       // spans: releases that succeeded without a hold
	Renumbered    []int32                       // spans: re-entries with another token than their hold's
	Regrants      []int32                       // spans: grants to an owner that already held the lock
	Carried       []int32                       // spans: grants requested inside a hold that was lost before the reply
	Parts         map[int32][]PartialReturn     // by hold: permits that were returned before the rest
	Promised      map[int32]time.Duration       // by span: core of a lost hold that ended before that was known
	leaseStarts   map[int32]property.LeaseStart // by span, see countLeases
	Kind          property.LockKind             // see [property.Options.LockKind]
	Quorum        bool                          // several servers decide about a key
	Fair          bool                          // the lock queues its waiters
	Poll          time.Duration                 // see [property.Options.Poll]
	Usage         []Usage                       // by key
	OwnerOrder    []ProgramOrder                // by owner
	IssueOrder    []ProgramOrder                // the same by the invocations alone, whatever the replies were
	UnknownWhy    []UnknownCause                // by owner: why its holds are unknown, if they are
	UnknownOwners int                           // number of owners whose holds are unknown
	UnknownCounts [UnknownCauses]int            // the same, by cause
	Levels        []Level                       // operations of owners inside their holds
	Counted       []int32                       // spans: replies with a hold count that can be compared

	// computed when needed, once
	ByOwner       func() *ownerHolds             // see orderByOwner
	Completed     func() map[int32]time.Duration // see findCompleted
	MultiAcquires func() map[int32][]int32       // see findMultiAcquires
	Kept          func() *kept.Values            // whose hold each value at a server is; nil: no samples can be read
	longestSpan   func() time.Duration           // see findLongestSpan
	Forced        func() map[int32][]int32       // see findForced
}

// Usage is the operations that owners of a key were seen to use.
type Usage uint8

const (
	UsageNested Usage = 1 << iota // acquire it again inside a hold
	UsageMixed                    // the same, in the other mode: to read inside a write, or to write inside a read
)

// bareView is a view without holds.
func bareView(h *history.History, o given.Options) *View {
	o.Off = given.DisabledRules{} // rules of one property do not belong to all
	v := &View{View: excuse.New(h, o), Kind: o.Kind(), Quorum: o.MayBeDown > 0,
		Fair: o.States(promise.Fair), Poll: o.Poll(), Parts: make(map[int32][]PartialReturn),
		Promised: make(map[int32]time.Duration), leaseStarts: make(map[int32]property.LeaseStart)}
	v.ByOwner, v.Completed = sync.OnceValue(v.orderByOwner), sync.OnceValue(v.findCompleted)
	v.MultiAcquires = sync.OnceValue(v.findMultiAcquires)
	v.Kept = sync.OnceValue(func() *kept.Values { return v.readKept(o.Values) })
	v.longestSpan, v.Forced = sync.OnceValue(v.findLongestSpan), sync.OnceValue(v.findForced)
	return v
}

// Every is a view with the holds of all owners, also of those whose program order is OrdUnknown; nothing is judged
// with it.
func Every(h *history.History, o given.Options) *View {
	v := bareView(h, o)
	v.fold(true)
	v.countLeases(o)
	v.endReported(o.ReportDelay)
	return v
}

// New is the view of a history whose holds are judged.
func New(h *history.History, o given.Options) *View {
	v := bareView(h, o)
	v.fold(false)
	v.countLeases(o)
	v.endStalled()
	v.endReported(o.ReportDelay)
	for owner, o := range v.OwnerOrder {
		if o == OrdUnknown {
			v.UnknownOwners++
			v.UnknownCounts[v.UnknownWhy[owner]]++
		}
	}
	v.ByKey = group(len(h.Keys), v.Holds)
	v.orderTies()
	return v
}

// fold finds the holds. Unless all is set, it skips owners whose program order is OrdUnknown.
func (v *View) fold(all bool) {
	h := v.H
	var marks []int32
	v.Rare = rareSpans(h)
	v.Lapses = v.findLapses()
	room := inBackground(func() { v.Holds = prefault(countGrants(h)) })
	order := inBackground(func() { marks = EffectOrder(h) })
	v.OwnerOrder, v.UnknownWhy = Orders(h)
	v.IssueOrder = slices.Clone(v.OwnerOrder)
	b := holdFold{openHolds: newOpenHolds(v, len(h.Owners)), lostOwners: make(map[int32]bool),
		hasLost: make(map[OwnerKey]bool), clients: byClient{of: make(map[int][]int32)}, all: all,
		modeUnknown: make(map[OwnerKey]bool), kept: make(map[OwnerKey]keptLevels), effects: make(map[int32]time.Duration)}
	v.Usage = make([]Usage, len(h.Keys))
	room()
	order()
	for _, e := range marks {
		switch {
		case e == NoEffect:
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
func prefault(n int) []Hold {
	const page = 4096 / int(unsafe.Sizeof(Hold{}))
	holds := make([]Hold, n)
	for i := 0; i < n; i += page {
		holds[i].Span = 0
	}
	return holds[:0]
}

// countGrants is the largest possible number of holds.
func countGrants(h *history.History) (n int) {
	for _, s := range refs.All(h.Spans) {
		if s.Outcome == history.OK && excuse.IsAcquire(s.Op) {
			n++
		}
	}
	return n
}

// rareSpans are the spans that most rules are about: all but acquires to write and releases that succeeded or, for
// a reason that is no flag of theirs, failed. So a rule about other operations, unknown outcomes or flags does not read
// every span.
func rareSpans(h *history.History) (rare []int32) {
	for i, s := range refs.All(h.Spans) {
		common := s.Op == history.OpAcquire && s.Write || s.Op == history.OpRelease
		flagged := s.Busy || s.Behind || s.Held || s.Undone || s.Denied || s.Lapsed || s.Expired || s.Zero || s.Absent ||
			s.Part
		if !common || flagged || s.Outcome == history.Info {
			rare = append(rare, i)
		}
	}
	return rare
}

// HasRare reports whether one of the rare spans is so.
func (v *View) HasRare(is func(*history.Span) bool) bool {
	return slices.ContainsFunc(v.Rare, func(i int32) bool { return is(&v.H.Spans[i]) })
}

// Unjudged reports whether an owner whose holds are unknown was granted an acquire for which is holds: then it is not
// certain that a property does not apply.
func (v *View) Unjudged(is func(*history.Span) bool) bool {
	return v.UnknownOwners > 0 && slices.ContainsFunc(v.H.Spans, func(s history.Span) bool {
		acquires := excuse.IsAcquire(s.Op)
		return acquires && s.Outcome == history.OK && v.OwnerOrder[s.Owner] == OrdUnknown && is(&s)
	})
}

// group are the holds of each key, in their order.
func group(keys int, holds []Hold) [][]int32 {
	all, first := refs.CountingSort(keys, len(holds), func(i int32) int32 { return holds[i].Key })
	byKey := make([][]int32, keys)
	for k := range keys {
		byKey[k] = all[first[k]:first[k+1]]
	}
	return byKey
}

// orderTies puts holds that began at the same instant into the only order that can be legal: by end, then by token.
func (v *View) orderTies() {
	for _, holds := range v.ByKey {
		for i := 0; i < len(holds); {
			j := i + 1
			for j < len(holds) && v.Holds[holds[j]].From == v.Holds[holds[i]].From {
				j++
			}
			if j > i+1 {
				slices.SortStableFunc(holds[i:j], func(a, b int32) int {
					x, y := &v.Holds[a], &v.Holds[b]
					return cmp.Or(cmp.Compare(x.Core, y.Core), cmp.Compare(x.OrderingToken(), y.OrderingToken()))
				})
			}
			i = j
		}
	}
}

// Granted is the index of the event that completed the acquire.
func (v *View) Granted(h *Hold) int { return int(v.H.Spans[h.Span].Ended) }
