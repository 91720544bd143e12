package checker

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file is the exact sweep behind [Linearizable]; linearizable.go asks
// porcupine about the same operations.

// takeKind is what an operation does to a lock.
type opKind uint8

const (
	opGrant     opKind = iota // acquire or try, granted
	opBusyTry                 // a try that failed because the lock was held
	opRelease                 // one release
	opBadToken                // of a flaw: a grant whose token is not what its place in the order demands
	opNoPermits               // of a flaw: a grant for which there were not enough permits
	opHorizon                 // not an operation: after it nothing of unknown outcome has an effect any more
	opHoldLost                // the owner's whole hold ends by itself (told lost, crash, release refused)
	opRegrant                 // of a flaw: a grant to who held a lock that is not reentrant
	opLeaseEnd                // the lease of an acquire of unknown outcome runs out
)

// lockOp is an operation on one key as a lock sees it.
type lockOp struct {
	call, ret time.Duration // never, if unknown
	owner     int32
	epoch     int32 // of the owner: a new one begins after each hold that was gone
	pos       int32 // how many known operations of the owner came before; -1 if that is not known
	depth     int64 // what the owner had before, by its program order; -1 if that is not known
	span      int32 // -1 if it is no operation of the history
	process   history.Process
	permits   int32  // asked or given back, at least 1
	token     uint64 // 0: none was told
	kind      opKind
	write     bool
	leased    bool // it is of unknown outcome, and asked for a lease
	unknown   bool // it may have happened at any time from call on, or never
}

// flaw is a proof that no legal order exists: two holds (x, y), or a single
// operation y that no hold explains (x < 0).
type flaw struct {
	x, y int32
	kind opKind
	segment
}

// sweep finds every flaw of one key that is no semaphore (see linear_permits.go
// for those). A flaw is certain; and if the key is exact and none is found, a
// legal order exists, by these arguments:
//
// Holds: as in exclusion.go, with the core's own end. For readers and writers
// only pairs with a writer count: granting each at the end of its acquire and
// taking it back at the start of its release is legal if no such pair overlaps.
//
// Releases: a release that was ok belongs to a hold.
//
// Re-entries, of a lock that is meant to be no reentrant one: there is no order in
// which its owner, who does one thing after the other, had given it back before.
//
// Tokens: if no cores overlap, the order of the holds is fixed, but for holds of
// no length in one instant. So tokens must grow in that order (tokensOf).
//
// Failed tries of a mutex: between neighbours i and i+1 the lock must be free
// only after i's release returned and before the acquire of i+1 was invoked;
// everywhere else one may be made to last, or the other to begin, so that the
// lock is held. Making every release as late and every acquire as early as it
// can be serves all tries at once: so only those whole spans lie in such a gap
// need somebody else. That is an acquire of unknown outcome that was invoked
// before the first of them returned: it may take the lock then and keep it until
// the gap ends. After the last hold any of them will do. In another gap its lease
// has to run out before the next hold, at a time that nobody knows, and it takes
// the lock once: so there must be as many that asked for a lease as there are
// gaps to explain. They are alike but for their invocations, so giving each gap in
// turn the next one is best. Two tries may want holds of no length in one instant
// in different orders: then a key is not exact (prepare). (For the other kinds
// failed tries are not judged here, and a key that has some is not exact.)
//
// slack is how much later than it happened the clock may have told an event.
func (v *view) sweep(k *keyOps, slack time.Duration, visit func(flaw)) {
	clean := v.sweepHolds(k, slack, visit)
	for _, i := range k.orphans {
		s := &v.h.Spans[i]
		visit(flaw{x: -1, y: i, kind: opRelease, segment: segment{s.Call, s.Return}})
	}
	if k.kind == plainMutex || k.kind == fencedMutex {
		for _, i := range k.regrants {
			s := &v.h.Spans[i]
			visit(flaw{x: -1, y: i, kind: opRegrant, segment: segment{s.Return, s.Return}})
			clean = false
		}
	}
	if !clean {
		return
	}
	if k.kind == fencedMutex || k.kind == reentrantFenced {
		v.sweepTokens(k, slack, visit)
	}
	if !k.exact || k.kind.shared() {
		return
	}
	v.sweepTries(k, slack, visit)
}

// sweepHolds visits, for each hold that overlaps with an earlier one that it
// must not, the one of those that lasts longest; and says whether there was none.
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
			visit(flaw{x: x, y: j, kind: opGrant, segment: segment{y.from, min(v.holds[x].core, y.core)}})
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

// rank is the token by which the place of a hold in the order is judged: none, if
// the reply was so slow that its promise was over. Then it tells of a grant that
// may have run out long ago, before others that were told sooner.
func (h *hold) orderingToken() uint64 {
	if h.expiredOnArrival {
		return 0
	}
	return h.token
}

// sweepTokens visits the holds whose token is not greater than that of one that
// was certainly before, or is the token of another, and the re-entries that do
// not repeat theirs. No two cores of the key overlap. Of an owner that acts again
// after an unknown outcome it is not certain which hold a token is of.
func (v *view) sweepTokens(k *keyOps, slack time.Duration, visit func(flaw)) {
	bad := func(x, y int32) {
		h := &v.holds[y]
		visit(flaw{x: x, y: y, kind: opBadToken, segment: segment{h.from, h.from}})
	}
	holds := v.byKey[k.key]
	sure, highest := 0, int32(-1)
	for n, j := range holds {
		y := &v.holds[j]
		for ; sure < n && v.holds[holds[sure]].from < y.core-slack; sure++ {
			if x := &v.holds[holds[sure]]; v.ownerOrder[x.owner] != sequential {
				continue
			}
			if highest < 0 || v.holds[holds[sure]].orderingToken() > v.holds[highest].orderingToken() {
				highest = holds[sure]
			}
		}
		if y.orderingToken() == 0 || v.ownerOrder[y.owner] != sequential {
			continue
		}
		if highest >= 0 && v.holds[highest].orderingToken() >= y.orderingToken() {
			bad(highest, j)
			continue
		}
		for _, i := range holds[sure:n] { // in whichever order: no two are equal
			if v.holds[i].token == y.token && !v.holds[i].expiredOnArrival && v.ownerOrder[v.holds[i].owner] == sequential {
				bad(i, j)
				break
			}
		}
	}
	for _, i := range k.renumbered {
		s := &v.h.Spans[i]
		if v.ownerOrder[s.Owner] != sequential {
			continue
		}
		visit(flaw{x: -1, y: i, kind: opBadToken, segment: segment{s.Call, s.Return}})
	}
}

// later is t+d, or never.
func later(t, d time.Duration) time.Duration {
	if d > 0 && t > never-d {
		return never
	}
	return t + d
}

// modelOps is what the model of a key is asked about: every known operation,
// and those of unknown outcome that could matter.
//
// An acquire of unknown outcome whose owner never acts again is dropped, unless
// a failed try may need it. That is harmless: take any legal order, and leave
// that acquire out. Whatever was legal after it stays so, because it only ever
// took room (the lock, a permit, a place among readers) and gave none back, and
// no grant that was told of needs the room to be taken. Only a failed try does.
func (v *view) modelOps(k *keyOps) []lockOp {
	ops := make([]lockOp, 0, len(k.spans)+8)
	var lapses []lockOp
	next := make(map[int32]int32)  // by owner: known operations so far
	depth := make(map[int64]int64) // by self
	for _, i := range k.spans {
		s := &v.h.Spans[i]
		op := lockOp{call: s.Call, ret: s.Return, owner: s.Owner, span: i, process: s.Process}
		op.unknown, op.permits, op.write, op.token = s.Outcome == history.Info, 1, s.Write, s.Token
		if k.kind == semaphore {
			op.permits = s.Permits
		}
		effect := s.Ended
		switch {
		case s.Busy:
			op.kind = opBusyTry
		case s.Outcome == history.Fail: // it did not happen; what a refused release tells is in the holds
			continue
		case s.Op == history.OpRelease:
			op.kind = opRelease
			effect = s.Invoked
		case op.unknown && v.ownerOrder[s.Owner] == sequential && len(k.busy) == 0:
			continue
		}
		if op.unknown || !k.kind.fenced() || promised(s) <= s.Return {
			op.token = 0
		}
		op.epoch, op.pos = k.epochs.of(s.Owner, effect), -1
		if op.kind != opBusyTry && v.ownerOrder[s.Owner] != concurrent {
			if op.pos = next[s.Owner]; !op.unknown {
				next[s.Owner]++
				k.placeDrops(s.Owner, effect, next[s.Owner])
			}
		}
		if op.depth = -1; op.kind != opBusyTry && !op.unknown && v.ownerOrder[s.Owner] == sequential {
			op.depth = depth[op.ownerEpoch()]
			depth[op.ownerEpoch()] += op.gain()
		}
		if op.leased = op.unknown && op.kind == opGrant && s.Lease > 0; op.leased && len(k.busy) > 0 {
			lapses = append(lapses, op.leaseEnd())
		}
		ops = append(ops, op)
	}
	return slices.Concat(ops, k.drops, lapses)
}

// lapse is the end of the lease of an acquire of unknown outcome: at any time, or
// never. Whatever such an acquire explains, no other operation needs it to end; only
// a failed try may need that somebody held the lock for a while.
func (op *lockOp) leaseEnd() lockOp {
	l := *op
	l.kind, l.span, l.depth, l.token, l.leased = opLeaseEnd, -1, -1, 0, false
	return l
}

// gain is what an operation changes in what its owner has.
func (op *lockOp) gain() int64 {
	if op.kind == opRelease {
		return -int64(op.permits)
	}
	return int64(op.permits)
}

// placeDrops tells the drops of an owner that come after the effect of one of
// its known operations how many of those there were.
func (k *keyOps) placeDrops(owner, event, known int32) {
	for i := range k.drops {
		if d := &k.drops[i]; d.owner == owner && k.dropped[i] >= event {
			d.pos = known
		}
	}
}

// windowOps is a part of a key's history: whole holds, each as one take and
// one give, and each as if of its own owner. Leaving out whole holds, or the
// re-entries inside one, keeps a legal order legal: so if the window has no
// legal order, the history has none.
func (v *view) windowOps(holds []int32) []lockOp {
	var ops []lockOp
	for _, i := range holds {
		h := &v.holds[i]
		s := &v.h.Spans[h.span]
		op := lockOp{call: h.asked, ret: h.from, owner: h.owner, epoch: i, pos: -1, depth: -1, span: h.span,
			process: s.Process, permits: 1, write: !h.reader, token: h.orderingToken()}
		ops = append(ops, op)
		if h.core == never {
			continue
		}
		op.kind, op.call, op.ret, op.span = opRelease, h.core, h.freeBy, -1
		if h.ending != endReleased {
			op.kind, op.unknown, op.ret = opHoldLost, true, never
		}
		ops = append(ops, op)
	}
	return ops
}
