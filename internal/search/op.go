package search

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// OpKind is the effect of an operation on a lock, or the kind of a flaw.
type OpKind uint8

// The kinds. Three of them are no operations, but name flaws that a sweep found; in a search, no state allows them.
const (
	OpGrant     OpKind = iota // an acquire or try that was granted
	OpBusyTry                 // a try that failed because the lock was held
	OpRelease                 // one release
	OpBadToken                // of a flaw: a grant whose token does not fit the order
	OpNoPermits               // of a flaw: a grant without enough permits
	OpHorizon                 // not an operation: after it nothing of unknown outcome takes effect
	OpHoldLost                // the owner's hold ends by itself: loss reported, crash, release refused
	OpRegrant                 // of a flaw: a grant to the holder of a lock that is not reentrant
	OpLeaseEnd                // the lease of an acquire of unknown outcome ends
)

// Op is an operation on one key, as a model of a lock takes it.
type Op struct {
	Call, Return time.Duration // history.Infinity, if unknown
	Owner        int32
	Epoch        int32           // of the owner: a new one begins after each lost hold
	Pos          int32           // how many known operations of the owner came before; -1 if that is unknown
	Depth        int64           // levels or permits that the owner held before, by its program order; -1: unknown
	Span         int32           // -1 if it is not an operation of the history
	Process      history.Process `json:"-"`
	Permits      int32           // requested or released, at least 1
	Token        uint64          // 0: none
	Kind         OpKind
	Write        bool
	Leased       bool // of unknown outcome, with a lease
	Unknown      bool // it may have taken effect at any time from Call on, or never
}

// OwnerEpoch identifies the acting owner, in one of its epochs.
func (op *Op) OwnerEpoch() int64 { return int64(op.Epoch)<<32 | int64(op.Owner) }

// LeaseEnd is the end of the lease of an acquire of unknown outcome: at any time, or never. Whatever such an acquire
// explains, no other operation needs it to end; only a failed try may need that the lock was held for a while.
func (op *Op) LeaseEnd() Op {
	l := *op
	l.Kind, l.Span, l.Depth, l.Token, l.Leased = OpLeaseEnd, -1, -1, 0, false
	return l
}

// Gain is the change of the number of levels, or permits, that the owner holds.
func (op *Op) Gain() int64 {
	if op.Kind == OpRelease {
		return -int64(op.Permits)
	}
	return int64(op.Permits)
}

// follows reports whether op may be the owner's next operation, after the one at pos. Equal times are concurrent for
// porcupine, but an owner's operations are sequential. One of unknown outcome comes after all before it, but may come
// later.
func (op *Op) follows(pos int32) bool {
	switch {
	case op.Pos < 0:
		return true
	case pos < 0:
		return op.Unknown || op.Pos >= -1-pos
	}
	return op.Pos == pos+1 || (op.Unknown && op.Pos <= pos)
}

// posAfter is the position after op, in a hold at position pos.
func (op *Op) posAfter(pos int32) int32 {
	if op.Unknown {
		return pos
	}
	return op.Pos
}

// firstPos is the position after op if it began the hold. If its outcome is unknown it may come late, and only its
// successors are certain: then it is -1 minus the least position that may follow.
func (op *Op) firstPos() int32 {
	if op.Unknown {
		return -1 - max(0, op.Pos)
	}
	return op.Pos
}
