package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// This file is about a lock that a program hands to its own waiters, without a message to other programs, and that
// states that it frees itself for all of them again ([promise.ProgramsTakeTurns]).

// The bounds of a lock that takes turns. They are many times the bounds of package lock, which hands a mutex over for
// 10 ms: after that the waiters of all programs compete.
const (
	keptFor    = 3 * time.Second
	keptGrants = 100
)

// turn is consecutive grants of a key to the clients of one program.
type turn struct {
	program int
	grants  []int32 // indices into holds
}

// judgeTurns finds the acquires that waited while one other program kept the lock to itself, for longer than keptFor
// and for more than keptGrants grants. A history with faults is not judged: on a slow connection, a waiter always asks
// after the others.
func (v *view) judgeTurns(o Options, found *findings) {
	if !o.states(promise.ProgramsTakeTurns) || o.SimPriorities || o.PerProgram < 2 || len(v.faultTimes()) > 0 {
		return
	}
	turns := v.longTurns(o.PerProgram)
	if len(turns) == 0 {
		return
	}
	for i := range v.h.Spans {
		s, client := &v.h.Spans[i], v.client(int32(i))
		if s.Op != history.OpAcquire || s.Return-s.Call <= keptFor {
			continue
		}
		for _, t := range turns[s.Key] {
			if t.program == client/o.PerProgram {
				continue
			}
			during := segment{v.holds[t.grants[0]].from, v.holds[t.grants[len(t.grants)-1]].from}
			p := longestOutside(segment{max(during.from, s.Call), min(during.until, s.Return)}, v.clientPauses()[client])
			if p.until-p.from <= keptFor {
				continue
			}
			if n, last := v.grantsIn(t.grants, p); n > keptGrants {
				found.add(finding{rule: keptToItself, x: last, y: int32(i), start: p.from, end: p.until})
				break
			}
		}
	}
}

// longTurns finds the turns of more than keptGrants grants, by key, but none at a key that another program may have
// been granted meanwhile, because an outcome or an owner's hold is unknown.
func (v *view) longTurns(clients int) map[int32][]turn {
	unsure := make(map[int32]bool)
	for _, s := range refs(v.h.Spans) {
		if s.Outcome == history.Info || v.ownerOrder[s.Owner] == ordUnknown {
			unsure[s.Key] = true
		}
	}
	turns := make(map[int32][]turn)
	for key, holds := range v.byKey {
		if unsure[int32(key)] {
			continue
		}
		var t turn
		keep := func() {
			if len(t.grants) > keptGrants {
				turns[int32(key)] = append(turns[int32(key)], t)
			}
		}
		for _, i := range holds {
			if program := v.client(v.holds[i].span) / clients; program != t.program {
				keep()
				t = turn{program: program}
			}
			t.grants = append(t.grants, i)
		}
		keep()
	}
	return turns
}

// grantsIn is how many of some holds were asked for and granted in s, and the last of them.
func (v *view) grantsIn(grants []int32, s segment) (n int, last int32) {
	last = none
	for i, h := range refsAt(v.holds, grants) {
		if h.asked >= s.from && h.from <= s.until {
			n, last = n+1, i
		}
	}
	return n, last
}
