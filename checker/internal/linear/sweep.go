package linear

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
)

// This file is the exact sweep behind [property.Linearizable]; linearizable.go has porcupine search the same
// operations.

// Flaw is evidence that no legal order exists: two holds (x, y), or a single operation y that no hold explains (x <
// 0).
type Flaw struct {
	X, y int32
	Kind search.OpKind
	segment.Segment
}

// Sweep finds every flaw of one key that is not a semaphore (for these, see permits.go). A flaw is certain; and
// if the key is exact and has none, a legal order exists, by these arguments:
//
// Holds: as in package exclusion, up to the end of the core. Of readers and writers only pairs with a writer count: to
// grant each hold at the end of its acquire and to end it at the start of its release is legal if no such pair
// overlaps.
//
// Releases: a release that succeeded belongs to a hold.
//
// Re-entries of a lock that is not meant to be reentrant: its owner, which is sequential, had not released it before
// in any order.
//
// Tokens: if no cores overlap, the order of the holds is fixed, except for holds of no length at one instant. So
// tokens must grow in that order (sweepTokens).
//
// Failed tries of a mutex: between neighbors i and i+1 the lock must be free only after i's release returned and
// before the acquire of i+1 was invoked; everywhere else one of the two holds can be extended so that the lock is
// held. Making every release as late and every acquire as early as possible explains as many tries as possible at
// once: only tries whose whole span lies in such a gap need another holder. That holder is an acquire of unknown
// outcome that was invoked before the first of these tries returned: it can take the lock then and keep it until the
// gap ends. After the last hold, any such acquire is enough. In another gap its lease has to end before the next
// hold, at an unknown time, and it takes the lock once, so there must be as many acquires with a lease as there are
// gaps to explain. They differ only in their invocations, so each gap takes the next one in order. Two tries may need
// holds of no length at one instant in different orders: then a key is not exact (prepare). (For other kinds of locks
// failed tries are not judged here, and a key that has some is not exact.)
//
// slack is by how much an event may be recorded too late.
func Sweep(v *bounds.View, k *KeyOps, slack time.Duration, visit func(Flaw)) {
	clean := sweepHolds(v, k, slack, visit)
	for i, s := range refs.At(v.H.Spans, k.Orphans) {
		visit(Flaw{X: -1, y: i, Kind: search.OpRelease, Segment: segment.Of(s.Call, s.Return)})
	}
	if k.Kind == search.PlainMutex || k.Kind == search.FencedMutex {
		for i, s := range refs.At(v.H.Spans, k.regrants) {
			visit(Flaw{X: -1, y: i, Kind: search.OpRegrant, Segment: segment.Of(s.Return, s.Return)})
			clean = false
		}
	}
	if !clean {
		return
	}
	if k.Kind == search.FencedMutex || k.Kind == search.ReentrantFenced {
		sweepTokens(v, k, slack, visit)
	}
	if !k.Exact || k.Kind.Shared() {
		return
	}
	sweepTries(v, k, slack, visit)
}

// sweepHolds visits, for each hold that overlaps with earlier ones against the rules, the pair with the longest of
// these. It returns whether there was none.
func sweepHolds(v *bounds.View, k *KeyOps, slack time.Duration, visit func(Flaw)) bool {
	clean := true
	var last, writer int32 = -1, -1 // the hold whose core ends last, and the writer's
	for _, j := range v.ByKey[k.key] {
		y, x := &v.Holds[j], last
		if y.Reader {
			x = writer
		}
		if x >= 0 && v.Holds[x].Core-y.From > slack && y.Core-v.Holds[x].From > slack {
			clean = false
			visit(Flaw{X: x, y: j, Kind: search.OpGrant, Segment: segment.Of(y.From, min(v.Holds[x].Core, y.Core))})
		}
		if last < 0 || y.Core > v.Holds[last].Core {
			last = j
		}
		if !y.Reader && (writer < 0 || y.Core > v.Holds[writer].Core) {
			writer = j
		}
	}
	return clean
}

// sweepTokens visits the holds whose token is not greater than the token of a hold that was certainly before, or equals
// another's, and the re-entries that do not repeat the token of their hold. No two cores of the key overlap. If an
// owner acts again after an unknown outcome, it is not certain which hold a token belongs to.
func sweepTokens(v *bounds.View, k *KeyOps, slack time.Duration, visit func(Flaw)) {
	bad := func(x, y int32) {
		h := &v.Holds[y]
		visit(Flaw{X: x, y: y, Kind: search.OpBadToken, Segment: segment.Of(h.From, h.From)})
	}
	holds := v.ByKey[k.key]
	sure, highest := 0, int32(-1)
	for n, j := range holds {
		y := &v.Holds[j]
		for ; sure < n && v.Holds[holds[sure]].From < y.Core-slack; sure++ {
			if x := &v.Holds[holds[sure]]; v.OwnerOrder[x.Owner] != ledger.OrdSequential {
				continue
			}
			if highest < 0 || v.Holds[holds[sure]].OrderingToken() > v.Holds[highest].OrderingToken() {
				highest = holds[sure]
			}
		}
		if y.OrderingToken() == 0 || v.OwnerOrder[y.Owner] != ledger.OrdSequential {
			continue
		}
		if highest >= 0 && v.Holds[highest].OrderingToken() >= y.OrderingToken() {
			bad(highest, j)
			continue
		}
		for _, i := range holds[sure:n] { // in any order: no two tokens are equal
			if v.Holds[i].Token == y.Token && !v.Holds[i].ExpiredOnArrival &&
				v.OwnerOrder[v.Holds[i].Owner] == ledger.OrdSequential {
				bad(i, j)
				break
			}
		}
	}
	for i, s := range refs.At(v.H.Spans, k.Renumbered) {
		if v.OwnerOrder[s.Owner] != ledger.OrdSequential {
			continue
		}
		visit(Flaw{X: -1, y: i, Kind: search.OpBadToken, Segment: segment.Of(s.Call, s.Return)})
	}
}

// ModelOps are the operations of a key for its model: every known one, and operations of unknown outcome that could
// matter.
//
// An acquire of unknown outcome whose owner never acts again is left out, unless a failed try may need it. That is
// safe: in any legal order it can be removed, and the rest stays legal, because it only ever took room (the lock, a
// permit) and returned none, and no known grant needs that room to be taken. Only a failed try does.
func ModelOps(v *bounds.View, k *KeyOps) []search.Op {
	ops := make([]search.Op, 0, len(k.Spans)+8)
	var lapses []search.Op
	next := make(map[int32]int32)  // by owner: known operations so far
	depth := make(map[int64]int64) // by self
	for i, s := range refs.At(v.H.Spans, k.Spans) {
		op := search.Op{Call: s.Call, Return: s.Return, Owner: s.Owner, Span: i, Process: s.Process}
		op.Unknown, op.Permits, op.Write, op.Token = s.Outcome == history.Info, 1, s.Write, s.Token
		if k.Kind == search.Semaphore {
			op.Permits = s.Permits
		}
		effect := s.Ended
		switch {
		case s.Busy && k.Explained(i):
			continue
		case s.Busy:
			op.Kind = search.OpBusyTry
		case s.Outcome == history.Fail: // it did not take effect; a refused release shows in the holds
			continue
		case s.Op == history.OpRelease:
			op.Kind = search.OpRelease
			op.Unknown = op.Unknown || slices.Contains(k.entered, s.Owner) || v.MayBeOfNothing(s)
			effect = s.Invoked
		case op.Unknown && v.OwnerOrder[s.Owner] == ledger.OrdSequential && len(k.Busy) == 0:
			continue
		}
		if op.Unknown || !k.Kind.Fenced() || ledger.Promised(s) <= s.Return || slices.Contains(v.Carried, i) {
			op.Token = 0
		}
		op.Epoch, op.Pos = k.epochs.of(s.Owner, effect), -1
		if op.Kind != search.OpBusyTry && v.OwnerOrder[s.Owner] != ledger.OrdUnknown {
			if op.Pos = next[s.Owner]; !op.Unknown {
				next[s.Owner]++
				k.placeDrops(s.Owner, effect, next[s.Owner])
			}
		}
		if op.Depth = -1; op.Kind != search.OpBusyTry && !op.Unknown && v.OwnerOrder[s.Owner] == ledger.OrdSequential {
			op.Depth = depth[op.OwnerEpoch()]
			depth[op.OwnerEpoch()] += op.Gain()
		}
		if op.Leased = op.Unknown && op.Kind == search.OpGrant && k.leased(s); op.Leased && len(k.Busy) > 0 {
			lapses = append(lapses, op.LeaseEnd())
		}
		ops = append(ops, op)
	}
	return slices.Concat(ops, k.Drops, lapses)
}

// placeDrops sets the position of the owner's lost holds that come after one of its known operations.
func (k *KeyOps) placeDrops(owner, event, known int32) {
	for i, d := range refs.All(k.Drops) {
		if d.Owner == owner && k.dropped[i] >= event {
			d.Pos = known
		}
	}
}

// WindowOps is a part of a key's history: whole holds, each as one grant and one release, and each as if it had its
// own owner. To leave out whole holds, or the re-entries inside one, keeps a legal order legal: so if the window has
// no legal order, the history has none.
func WindowOps(v *bounds.View, holds []int32) []search.Op {
	var ops []search.Op
	for i, h := range refs.At(v.Holds, holds) {
		grant := search.Op{Call: h.Asked, Return: h.From, Owner: h.Owner, Epoch: i, Pos: -1, Depth: -1, Span: h.Span,
			Process: v.H.Spans[h.Span].Process, Permits: 1, Write: !h.Reader, Token: h.OrderingToken()}
		ops = appendHold(ops, grant, h.Core, h.FreeBy, h.Ending)
	}
	return ops
}

// appendHold appends a grant and, if the hold ends, its release, or its loss.
func appendHold(ops []search.Op, op search.Op, core, freeBy time.Duration, end ledger.Ending) []search.Op {
	ops = append(ops, op)
	if core == segment.Never {
		return ops
	}
	op.Kind, op.Call, op.Return, op.Span = search.OpRelease, core, freeBy, -1
	if end != ledger.EndReleased {
		op.Kind, op.Unknown, op.Return = search.OpHoldLost, true, segment.Never
	}
	return append(ops, op)
}
