package checker

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// lockKind is what a key's history shows its lock to be. Each kind has a model;
// every model knows the owner, which those of Knossos do not: there anybody may release.
type lockKind uint8

const (
	plainMutex      lockKind = iota // one owner, once
	reentrantMutex                  // the owner may acquire again, and must release as often
	fencedMutex                     // a mutex whose grants carry growing tokens
	reentrantFenced                 // both; a re-entry repeats the token of its hold, or tells none
	semaphore                       // as many permits as there are
	readersWriter                   // many readers or one writer, each of them reentrant
	unmodelled                      // its history mixes what no model speaks of
)

// String is the name of a kind in a sentence.
func (k lockKind) String() string {
	return [...]string{"mutex", "reentrant mutex", "fenced mutex", "reentrant fenced mutex", "semaphore",
		"readers-writer lock", "lock of no known kind"}[k]
}

// shared says that several owners may be in at once.
func (k lockKind) shared() bool { return k == semaphore || k == readersWriter }

func (k lockKind) reentrant() bool { return k != plainMutex && k != fencedMutex }

// mutexState is an owner-aware mutex.
type mutexState struct {
	owner     int64 // see lockOp.self; -1: free
	token     uint64
	highest   uint64 // token ever seen
	depth     int32
	pos       int32 // of the owner's last operation of known outcome, see lockOp.follows
	ended     bool  // the end has passed: unknown operations have no effect any more
	mayExpire bool  // all that the owner has are acquires of unknown outcome with a lease, which may run out
}

// self is who acts, in one life of an owner.
func (op *lockOp) ownerEpoch() int64 { return int64(op.epoch)<<32 | int64(op.owner) }

// free is s after the last release. The highest token outlives its hold.
func (s mutexState) free() mutexState {
	return mutexState{owner: -1, highest: s.highest, ended: s.ended}
}

// step says whether op is legal in s, and what s becomes.
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

// enter takes the free lock. A token must be greater than any before; no token says nothing.
func (s mutexState) enter(op *lockOp) (bool, mutexState) {
	if op.depth > 0 || (op.token != 0 && op.token <= s.highest) {
		return false, s
	}
	return true, mutexState{owner: op.ownerEpoch(), token: op.token, highest: max(s.highest, op.token), depth: 1,
		pos: op.firstPos(), ended: s.ended, mayExpire: op.leased}
}

// follows says that op may be the owner's next operation, after the one at pos.
// Equal stamps are concurrent for porcupine; but what one owner did one after
// the other was not. What is of unknown outcome comes after all that went before
// it, but may come later.
func (op *lockOp) follows(pos int32) bool {
	switch {
	case op.pos < 0:
		return true
	case pos < 0:
		return op.unknown || op.pos >= -1-pos
	}
	return op.pos == pos+1 || (op.unknown && op.pos <= pos)
}

// at is the position after op in a hold in which it was pos.
func (op *lockOp) posAfter(pos int32) int32 {
	if op.unknown {
		return pos
	}
	return op.pos
}

// first is the position after op if it began the hold. If its outcome is unknown
// it may be late, and all that is certain is what comes after it: -1 minus the
// least position that may.
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

// modelOf is a kind of lock as porcupine wants it; permits are those of a
// semaphore, describe may be nil.
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
			return false, nil // an illegal state is thrown away: no memory for it
		}
		return true, next
	}
	m.Equal = func(a, b any) bool { return a.(mutexState) == b.(mutexState) }
	m.Hash = func(state any) uint64 { return state.(mutexState).hash() }
	return m
}
