package search

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Kind is the kind of lock that a key's history shows. Each kind has a model that knows the owner; in the models
// of Knossos any process may release.
type Kind uint8

// The kinds.
const (
	PlainMutex      Kind = iota // one owner, once
	ReentrantMutex              // the owner may acquire again, and releases as often
	FencedMutex                 // a mutex with growing tokens
	ReentrantFenced             // both; a re-entry has the token of its hold, or none
	Semaphore                   // with a number of permits
	ReadersWriter               // many readers or one writer, each of them reentrant
	Unmodelled                  // its history mixes operations that no model has
)

// String names a kind in a sentence.
func (k Kind) String() string {
	return [...]string{"mutex", "reentrant mutex", "fenced mutex", "reentrant fenced mutex", "semaphore",
		"readers-writer lock", "lock of no known kind"}[k]
}

// Shared reports whether several owners may hold the lock at once.
func (k Kind) Shared() bool { return k == Semaphore || k == ReadersWriter }

// Fenced reports whether grants have tokens.
func (k Kind) Fenced() bool { return k == FencedMutex || k == ReentrantFenced }

// Reentrant reports whether the owner may acquire the lock again.
func (k Kind) Reentrant() bool { return k != PlainMutex && k != FencedMutex }

// mutexState is the state of a mutex that knows its owner.
type mutexState struct {
	owner     int64 // see [Op.OwnerEpoch]; -1: free
	token     uint64
	highest   uint64 // greatest token so far
	depth     int32
	pos       int32 // of the owner's last known operation, see Op.follows
	ended     bool  // the horizon has passed: operations of unknown outcome no longer have an effect
	mayExpire bool  // all acquires of the owner are of unknown outcome and have leases, which may end
}

// free is s after the last release. The greatest token outlives its hold.
func (s mutexState) free() mutexState {
	return mutexState{owner: -1, highest: s.highest, ended: s.ended}
}

// step reports whether op is legal in s, and returns the next state.
func (s mutexState) step(op *Op, kind Kind) (bool, mutexState) {
	if op.Kind == OpHorizon {
		s.ended = true
		return true, s
	}
	if op.Unknown && s.ended {
		return true, s
	}
	mine := s.owner == op.OwnerEpoch()
	switch op.Kind {
	case OpGrant:
		if s.owner < 0 {
			return s.enter(op)
		}
		if op.Depth >= 0 && op.Depth != int64(s.depth) {
			return false, s
		}
		if !kind.Reentrant() || (op.Token != 0 && s.token != 0 && op.Token != s.token) {
			return false, s
		}
		s.depth++
		s.mayExpire = s.mayExpire && op.Leased
	case OpBusyTry:
		return s.owner >= 0, s
	case OpHoldLost:
		return mine && op.follows(s.pos), s.free()
	case OpLeaseEnd:
		return mine && s.mayExpire && op.follows(s.pos), s.free()
	case OpRelease:
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
func (s mutexState) enter(op *Op) (bool, mutexState) {
	if op.Depth > 0 || (op.Token != 0 && op.Token <= s.highest) {
		return false, s
	}
	return true, mutexState{owner: op.OwnerEpoch(), token: op.Token, highest: max(s.highest, op.Token), depth: 1,
		pos: op.firstPos(), ended: s.ended, mayExpire: op.Leased}
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

// Model is porcupine's model of a kind of lock; permits is the size of a semaphore. describe may be nil.
func Model(kind Kind, permits int32, describe func(op *Op) string) porcupine.Model {
	m := porcupine.Model{
		DescribeOperation: func(input, _ any) string {
			if describe == nil {
				return ""
			}
			return describe(input.(*Op))
		},
		DescribeState: func(state any) string { return fmt.Sprint(state) },
	}
	if kind.Shared() {
		m.Init = func() any { return sharedState{} }
		m.Step = func(state, input, _ any) (bool, any) {
			ok, next := state.(sharedState).step(input.(*Op), kind, permits)
			return ok, next
		}
		m.Equal = func(a, b any) bool { return a.(sharedState) == b.(sharedState) }
		m.Hash = func(state any) uint64 { return state.(sharedState).hash() }
		return m
	}
	m.Init = func() any { return mutexState{owner: -1} }
	m.Step = func(state, input, _ any) (bool, any) {
		ok, next := state.(mutexState).step(input.(*Op), kind)
		if !ok {
			return false, nil // an illegal state is dropped: no memory for it
		}
		return true, next
	}
	m.Equal = func(a, b any) bool { return a.(mutexState) == b.(mutexState) }
	m.Hash = func(state any) uint64 { return state.(mutexState).hash() }
	return m
}
