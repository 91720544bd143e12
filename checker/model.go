package checker

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// lockKind is the kind of lock that a key's history shows. Each kind has a model that knows the owner; in the models
// of Knossos any process may release.
type lockKind uint8

const (
	plainMutex      lockKind = iota // one owner, once
	reentrantMutex                  // the owner may acquire again, and releases as often
	fencedMutex                     // a mutex with growing tokens
	reentrantFenced                 // both; a re-entry has the token of its hold, or none
	semaphore                       // with a number of permits
	readersWriter                   // many readers or one writer, each of them reentrant
	unmodelled                      // its history mixes what no model has
)

// String names a kind in a sentence.
func (k lockKind) String() string {
	return [...]string{"mutex", "reentrant mutex", "fenced mutex", "reentrant fenced mutex", "semaphore",
		"readers-writer lock", "lock of no known kind"}[k]
}

// shared reports whether several owners may hold the lock at once.
func (k lockKind) shared() bool { return k == semaphore || k == readersWriter }

func (k lockKind) reentrant() bool { return k != plainMutex && k != fencedMutex }

// mutexState is the state of a mutex that knows its owner.
type mutexState struct {
	owner     int64 // see lockOp.ownerEpoch; -1: free
	token     uint64
	highest   uint64 // greatest token so far
	depth     int32
	pos       int32 // of the owner's last known operation, see lockOp.follows
	ended     bool  // the horizon has passed: operations of unknown outcome no longer have an effect
	mayExpire bool  // all acquires of the owner are of unknown outcome and have leases, which may end
}

// ownerEpoch identifies the acting owner, in one of its epochs.
func (op *lockOp) ownerEpoch() int64 { return int64(op.epoch)<<32 | int64(op.owner) }

// free is s after the last release. The greatest token outlives its hold.
func (s mutexState) free() mutexState {
	return mutexState{owner: -1, highest: s.highest, ended: s.ended}
}

// step reports whether op is legal in s, and returns the next state.
func (s mutexState) step(op *lockOp, kind lockKind) (bool, mutexState) {
	if op.kind == opHorizon {
		s.ended = true
		return true, s
	}
	if op.unknown && s.ended {
		return true, s
	}
	mine := s.owner == op.ownerEpoch()
	switch op.kind {
	case opGrant:
		if s.owner < 0 {
			return s.enter(op)
		}
		if op.depth >= 0 && op.depth != int64(s.depth) {
			return false, s
		}
		if !kind.reentrant() || (op.token != 0 && s.token != 0 && op.token != s.token) {
			return false, s
		}
		s.depth++
		s.mayExpire = s.mayExpire && op.leased
	case opBusyTry:
		return s.owner >= 0, s
	case opHoldLost:
		return mine && op.follows(s.pos), s.free()
	case opLeaseEnd:
		return mine && s.mayExpire && op.follows(s.pos), s.free()
	case opRelease:
		s.depth--
	}
	if !mine || !op.follows(s.pos) {
		return false, s
	}
	if s.depth == 0 {
		return true, s.free()
	}
	s.pos = op.posAfter(s.pos)
	return true, s
}

// enter acquires the free lock. A token must be greater than all before it; without a token nothing is known.
func (s mutexState) enter(op *lockOp) (bool, mutexState) {
	if op.depth > 0 || (op.token != 0 && op.token <= s.highest) {
		return false, s
	}
	return true, mutexState{owner: op.ownerEpoch(), token: op.token, highest: max(s.highest, op.token), depth: 1,
		pos: op.firstPos(), ended: s.ended, mayExpire: op.leased}
}

// follows reports whether op may be the owner's next operation, after the one at pos. Equal times are concurrent for
// porcupine, but an owner's operations are sequential. One of unknown outcome comes after all before it, but may come
// later.
func (op *lockOp) follows(pos int32) bool {
	switch {
	case op.pos < 0:
		return true
	case pos < 0:
		return op.unknown || op.pos >= -1-pos
	}
	return op.pos == pos+1 || (op.unknown && op.pos <= pos)
}

// posAfter is the position after op, in a hold at position pos.
func (op *lockOp) posAfter(pos int32) int32 {
	if op.unknown {
		return pos
	}
	return op.pos
}

// firstPos is the position after op if it began the hold. If its outcome is unknown it may come late, and only what
// comes after it is certain: then it is -1 minus the least position that may follow.
func (op *lockOp) firstPos() int32 {
	if op.unknown {
		return -1 - max(0, op.pos)
	}
	return op.pos
}

func (s mutexState) hash() uint64 {
	h := uint64(s.owner)<<8 | uint64(uint32(s.depth))<<1
	if s.ended {
		h |= 1
	}
	if s.mayExpire {
		h = ^h
	}
	return (h ^ s.highest<<20) * 0x9E3779B97F4A7C15
}

func (s mutexState) String() string {
	switch {
	case s.owner < 0:
		return "free"
	case s.token != 0:
		return fmt.Sprintf("held, depth %d, token %d", s.depth, s.token)
	}
	return fmt.Sprintf("held, depth %d", s.depth)
}

// modelOf is porcupine's model of a kind of lock; permits are those of a semaphore. describe may be nil.
func modelOf(kind lockKind, permits int32, describe func(op *lockOp) string) porcupine.Model {
	m := porcupine.Model{
		DescribeOperation: func(input, _ any) string {
			if describe == nil {
				return ""
			}
			return describe(input.(*lockOp))
		},
		DescribeState: func(state any) string { return fmt.Sprint(state) },
	}
	if kind.shared() {
		m.Init = func() any { return sharedState{} }
		m.Step = func(state, input, _ any) (bool, any) {
			ok, next := state.(sharedState).step(input.(*lockOp), kind, permits)
			return ok, next
		}
		m.Equal = func(a, b any) bool { return a.(sharedState) == b.(sharedState) }
		m.Hash = func(state any) uint64 { return state.(sharedState).hash() }
		return m
	}
	m.Init = func() any { return mutexState{owner: -1} }
	m.Step = func(state, input, _ any) (bool, any) {
		ok, next := state.(mutexState).step(input.(*lockOp), kind)
		if !ok {
			return false, nil // an illegal state is dropped: no memory for it
		}
		return true, next
	}
	m.Equal = func(a, b any) bool { return a.(mutexState) == b.(mutexState) }
	m.Hash = func(state any) uint64 { return state.(mutexState).hash() }
	return m
}
