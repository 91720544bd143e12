package wakeup

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
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
func judgeTurns(v *bounds.View, o given.Options, found *finding.Findings) {
	if !o.States(promise.ProgramsTakeTurns) || o.SimPriorities || o.PerProgram < 2 || len(v.FaultTimes()) > 0 {
		return
	}
	turns := longTurns(v, o.PerProgram)
	if len(turns) == 0 {
		return
	}
	for i := range v.H.Spans {
		s, client := &v.H.Spans[i], v.Client(int32(i))
		if s.Op != history.OpAcquire || s.Return-s.Call <= keptFor {
			continue
		}
		for _, t := range turns[s.Key] {
			if t.program == client/o.PerProgram {
				continue
			}
			during := segment.Of(v.Holds[t.grants[0]].From, v.Holds[t.grants[len(t.grants)-1]].From)
			p := segment.LongestOutside(segment.Of(max(during.From, s.Call), min(during.Until, s.Return)),
				v.ClientPauses()[client])
			if p.Until-p.From <= keptFor {
				continue
			}
			if n, last := grantsIn(v, t.grants, p); n > keptGrants {
				found.Add(finding.Finding{Rule: keptToItself, X: last, Y: int32(i), Start: p.From, End: p.Until})
				break
			}
		}
	}
}

// longTurns finds the turns of more than keptGrants grants, by key, but none at a key that another program may have
// been granted meanwhile, because an outcome or an owner's hold is unknown.
func longTurns(v *bounds.View, clients int) map[int32][]turn {
	unsure := make(map[int32]bool)
	for _, s := range refs.All(v.H.Spans) {
		if s.Outcome == history.Info || v.OwnerOrder[s.Owner] == ledger.OrdUnknown {
			unsure[s.Key] = true
		}
	}
	turns := make(map[int32][]turn)
	for key, holds := range v.ByKey {
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
			if program := v.Client(v.Holds[i].Span) / clients; program != t.program {
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
func grantsIn(v *bounds.View, grants []int32, s segment.Segment) (n int, last int32) {
	last = refs.None
	for i, h := range refs.At(v.Holds, grants) {
		if h.Asked >= s.From && h.From <= s.Until {
			n, last = n+1, i
		}
	}
	return n, last
}
