package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/search"
)

// This file is the exact sweep behind [Linearizable]; linearizable.go has porcupine search the same operations.

// flaw is evidence that no legal order exists: two holds (x, y), or a single operation y that no hold explains (x <
// 0).
type flaw struct {
	x, y int32
	kind search.OpKind
	segment
}

// sweep finds every flaw of one key that is not a semaphore (for these, see linear_permits.go). A flaw is certain; and
// if the key is exact and has none, a legal order exists, by these arguments:
//
// Holds: as in exclusion.go, up to the end of the core. Of readers and writers only pairs with a writer count: to
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
func (v *view) sweep(k *keyOps, slack time.Duration, visit func(flaw)) {
	clean := v.sweepHolds(k, slack, visit)
	for i, s := range refsAt(v.h.Spans, k.orphans) {
		visit(flaw{x: -1, y: i, kind: search.OpRelease, segment: segment{s.Call, s.Return}})
	}
	if k.kind == search.PlainMutex || k.kind == search.FencedMutex {
		for i, s := range refsAt(v.h.Spans, k.regrants) {
			visit(flaw{x: -1, y: i, kind: search.OpRegrant, segment: segment{s.Return, s.Return}})
			clean = false
		}
	}
	if !clean {
		return
	}
	if k.kind == search.FencedMutex || k.kind == search.ReentrantFenced {
		v.sweepTokens(k, slack, visit)
	}
	if !k.exact || k.kind.Shared() {
		return
	}
	v.sweepTries(k, slack, visit)
}

// sweepHolds visits, for each hold that overlaps with earlier ones against the rules, the pair with the longest of
// these. It returns whether there was none.
func (v *view) sweepHolds(k *keyOps, slack time.Duration, visit func(flaw)) bool {
	clean := true
	var last, writer int32 = -1, -1 // the hold whose core ends last, and the writer's
	for _, j := range v.byKey[k.key] {
		y, x := &v.holds[j], last
		if y.reader {
			x = writer
		}
		if x >= 0 && v.holds[x].core-y.from > slack && y.core-v.holds[x].from > slack {
			clean = false
			visit(flaw{x: x, y: j, kind: search.OpGrant, segment: segment{y.from, min(v.holds[x].core, y.core)}})
		}
		if last < 0 || y.core > v.holds[last].core {
			last = j
		}
		if !y.reader && (writer < 0 || y.core > v.holds[writer].core) {
			writer = j
		}
	}
	return clean
}

// orderingToken is the token by which the order of a hold is judged: none if its promise had ended when the slow
// reply came. Then the grant may have expired long ago, before others that returned sooner.
func (h *hold) orderingToken() uint64 {
	if h.expiredOnArrival {
		return 0
	}
	return h.token
}

// sweepTokens visits the holds whose token is not greater than the token of a hold that was certainly before, or equals
// another's, and the re-entries that do not repeat the token of their hold. No two cores of the key overlap. If an
// owner acts again after an unknown outcome, it is not certain which hold a token belongs to.
func (v *view) sweepTokens(k *keyOps, slack time.Duration, visit func(flaw)) {
	bad := func(x, y int32) {
		h := &v.holds[y]
		visit(flaw{x: x, y: y, kind: search.OpBadToken, segment: segment{h.from, h.from}})
	}
	holds := v.byKey[k.key]
	sure, highest := 0, int32(-1)
	for n, j := range holds {
		y := &v.holds[j]
		for ; sure < n && v.holds[holds[sure]].from < y.core-slack; sure++ {
			if x := &v.holds[holds[sure]]; v.ownerOrder[x.owner] != ordSequential {
				continue
			}
			if highest < 0 || v.holds[holds[sure]].orderingToken() > v.holds[highest].orderingToken() {
				highest = holds[sure]
			}
		}
		if y.orderingToken() == 0 || v.ownerOrder[y.owner] != ordSequential {
			continue
		}
		if highest >= 0 && v.holds[highest].orderingToken() >= y.orderingToken() {
			bad(highest, j)
			continue
		}
		for _, i := range holds[sure:n] { // in any order: no two tokens are equal
			if v.holds[i].token == y.token && !v.holds[i].expiredOnArrival && v.ownerOrder[v.holds[i].owner] == ordSequential {
				bad(i, j)
				break
			}
		}
	}
	for i, s := range refsAt(v.h.Spans, k.renumbered) {
		if v.ownerOrder[s.Owner] != ordSequential {
			continue
		}
		visit(flaw{x: -1, y: i, kind: search.OpBadToken, segment: segment{s.Call, s.Return}})
	}
}

// later is t+d, or never.
func later(t, d time.Duration) time.Duration {
	if d > 0 && t > never-d {
		return never
	}
	return t + d
}

// modelOps are the operations of a key for its model: every known one, and operations of unknown outcome that could
// matter.
//
// An acquire of unknown outcome whose owner never acts again is left out, unless a failed try may need it. That is
// safe: in any legal order it can be removed, and the rest stays legal, because it only ever took room (the lock, a
// permit) and returned none, and no known grant needs that room to be taken. Only a failed try does.
func (v *view) modelOps(k *keyOps) []search.Op {
	ops := make([]search.Op, 0, len(k.spans)+8)
	var lapses []search.Op
	next := make(map[int32]int32)  // by owner: known operations so far
	depth := make(map[int64]int64) // by self
	for i, s := range refsAt(v.h.Spans, k.spans) {
		op := search.Op{Call: s.Call, Return: s.Return, Owner: s.Owner, Span: i, Process: s.Process}
		op.Unknown, op.Permits, op.Write, op.Token = s.Outcome == history.Info, 1, s.Write, s.Token
		if k.kind == search.Semaphore {
			op.Permits = s.Permits
		}
		effect := s.Ended
		switch {
		case s.Busy && k.explained(i):
			continue
		case s.Busy:
			op.Kind = search.OpBusyTry
		case s.Outcome == history.Fail: // it did not take effect; a refused release shows in the holds
			continue
		case s.Op == history.OpRelease:
			op.Kind = search.OpRelease
			op.Unknown = op.Unknown || slices.Contains(k.entered, s.Owner) || v.mayBeOfNothing(s)
			effect = s.Invoked
		case op.Unknown && v.ownerOrder[s.Owner] == ordSequential && len(k.busy) == 0:
			continue
		}
		if op.Unknown || !k.kind.Fenced() || promised(s) <= s.Return || slices.Contains(v.carried, i) {
			op.Token = 0
		}
		op.Epoch, op.Pos = k.epochs.of(s.Owner, effect), -1
		if op.Kind != search.OpBusyTry && v.ownerOrder[s.Owner] != ordUnknown {
			if op.Pos = next[s.Owner]; !op.Unknown {
				next[s.Owner]++
				k.placeDrops(s.Owner, effect, next[s.Owner])
			}
		}
		if op.Depth = -1; op.Kind != search.OpBusyTry && !op.Unknown && v.ownerOrder[s.Owner] == ordSequential {
			op.Depth = depth[op.OwnerEpoch()]
			depth[op.OwnerEpoch()] += op.Gain()
		}
		if op.Leased = op.Unknown && op.Kind == search.OpGrant && k.leased(s); op.Leased && len(k.busy) > 0 {
			lapses = append(lapses, op.LeaseEnd())
		}
		ops = append(ops, op)
	}
	return slices.Concat(ops, k.drops, lapses)
}

// placeDrops sets the position of the owner's lost holds that come after one of its known operations.
func (k *keyOps) placeDrops(owner, event, known int32) {
	for i, d := range refs(k.drops) {
		if d.Owner == owner && k.dropped[i] >= event {
			d.Pos = known
		}
	}
}

// windowOps is a part of a key's history: whole holds, each as one grant and one release, and each as if it had its
// own owner. To leave out whole holds, or the re-entries inside one, keeps a legal order legal: so if the window has
// no legal order, the history has none.
func (v *view) windowOps(holds []int32) []search.Op {
	var ops []search.Op
	for i, h := range refsAt(v.holds, holds) {
		grant := search.Op{Call: h.asked, Return: h.from, Owner: h.owner, Epoch: i, Pos: -1, Depth: -1, Span: h.span,
			Process: v.h.Spans[h.span].Process, Permits: 1, Write: !h.reader, Token: h.orderingToken()}
		ops = appendHold(ops, grant, h.core, h.freeBy, h.ending)
	}
	return ops
}

// appendHold appends a grant and, if the hold ends, its release, or its loss.
func appendHold(ops []search.Op, op search.Op, core, freeBy time.Duration, end ending) []search.Op {
	ops = append(ops, op)
	if core == never {
		return ops
	}
	op.Kind, op.Call, op.Return, op.Span = search.OpRelease, core, freeBy, -1
	if end != endReleased {
		op.Kind, op.Unknown, op.Return = search.OpHoldLost, true, never
	}
	return append(ops, op)
}
