package wakeup

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/excuse"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// This file is about acquires of several keys, which take them one after the other: an acquire that has some of them
// and waits for another keeps them from everyone else. A lock that states that it backs off
// ([promise.MultiKeyBacksOff4s]) releases them and starts again.

// For how long a lock that backs off keeps a key. Package lock waits for another key for at most 2 s, and for the reply
// of a server that hangs for up to 5 s more (its default for Options.Timeout).
const (
	keptWhileHeld   = 4 * time.Second
	keptWhileSilent = 9 * time.Second // while a server is unavailable
)

// pendingHold is an acquire of several keys and a time in which nobody else can have had one of them.
type pendingHold struct {
	segment.Segment
	span int32 // its part for that key
}

// pendingMark is a change at an instant.
type pendingMark struct {
	at      time.Duration
	held    int   // +1, -1: something that is not judged may keep the key from here on, or no longer
	pending int   // +1, -1: an acquire of several keys begins, or ends
	span    int64 // the number of its part for the key, with that sign
}

// judgeHoldAndWait finds the waits for a single key that no client held, and that only one acquire of several keys can
// have kept, for longer than a lock that backs off may keep it. If several such acquires were in flight, each may have
// had the key in its turn, so these times are not judged. Neither are outages of the key's own server, nor runs in
// which the waiter may always ask after the others because its connection is slow. A hang of another server allows more
// time.
func judgeHoldAndWait(v *bounds.View, o given.Options, found *finding.Findings) {
	if !o.States(promise.MultiKeyBacksOff4s) || o.SimPriorities {
		return
	}
	several := v.MultiAcquires()
	if several == nil {
		return
	}
	held := pendingHolds(v, several, o)
	if len(held) == 0 {
		return
	}
	silent := v.Outages(o)
	v.LongWaits(o.Slack(), func(i int32) {
		s := &v.H.Spans[i]
		limit := v.H.Limit(s.Key)
		if s.Op != history.OpAcquire || v.OfSeveral(i) || limit > 0 && s.Permits > limit {
			return
		}
		for _, k := range held[s.Key] {
			p := segment.LongestOutside(segment.Of(max(k.From, s.Call), min(k.Until, s.Return)),
				v.ClientPauses()[v.Client(i)], v.ClientPauses()[v.Client(k.span)])
			bound := keptWhileHeld
			if silent.Touches(p) {
				bound = keptWhileSilent
			}
			if p.Until-p.From > bound+o.Slack() {
				found.Add(finding.Finding{Rule: holdAndWait, X: k.span, Y: i, Start: p.From, End: p.Until,
					Note: waitedFor(v, k.span, p)})
			}
		}
	})
}

// pendingHolds finds, by key, the times longer than keptWhileHeld in which only one acquire of several keys can have
// had it.
func pendingHolds(v *bounds.View, several map[int32][]int32, o given.Options) map[int32][]pendingHold {
	e, ends := v.FreeTimes().Extents, v.EndsOf(several)
	marks := make(map[int32][]pendingMark)
	for i, end := range ends {
		s := &v.H.Spans[i]
		marks[s.Key] = append(marks[s.Key], pendingMark{s.Call, 0, +1, int64(i)}, pendingMark{end, 0, -1, -int64(i)})
	}
	o.Promises |= promise.PerServerFailures // a server that hangs is no reason to keep keys of another one
	found, excuses := make(map[int32][]pendingHold), v.ExcusesFor(o)
	for key, list := range marks {
		if len(v.Resizes()[key].Times) > 0 {
			continue
		}
		away := excuses(excuse.Scope{Key: key}).Away.Windows
		for _, s := range slices.Concat(e.HeldBeside(key, ends), slowTries(v, key, o), away) {
			list = append(list, pendingMark{at: s.From, held: +1}, pendingMark{at: s.Until, held: -1})
		}
		if all := pendingHoldsIn(list); len(all) > 0 {
			found[key] = all
		}
	}
	return found
}

// slowTries are the tries at a key that took longer than the slack: a try of several keys may have had it for as long.
func slowTries(v *bounds.View, key int32, o given.Options) (slow []segment.Segment) {
	for _, s := range refs.At(v.H.Spans, v.Rare) {
		if s.Key == key && s.Op == history.OpTry && s.Return-s.Call > o.Slack() {
			slow = append(slow, segment.Of(s.Call, s.Return))
		}
	}
	return slow
}

// pendingHoldsIn goes through the marks of a key in the order of time.
func pendingHoldsIn(marks []pendingMark) (all []pendingHold) {
	slices.SortFunc(marks, func(a, b pendingMark) int { return cmp.Compare(a.at, b.at) })
	held, pending, span := 0, 0, int64(0)
	now := pendingHold{span: refs.None}
	for n, m := range marks {
		held, pending, span = held+m.held, pending+m.pending, span+m.span
		if n+1 < len(marks) && marks[n+1].at == m.at {
			continue
		}
		by := refs.None
		if held == 0 && pending == 1 {
			by = int32(span)
		}
		if by == now.span {
			continue
		}
		if now.Until = m.at; now.span != refs.None && now.Until-now.From > keptWhileHeld {
			all = append(all, now)
		}
		now = pendingHold{segment.Of(m.at, segment.Never), by}
	}
	return all
}

// waitedFor names the other key of an acquire of several keys that was held for the longest part of p.
func waitedFor(v *bounds.View, part int32, p segment.Segment) string {
	best, longest := "another one", time.Duration(0)
	for _, spans := range v.MultiAcquires() {
		if !slices.Contains(spans, part) {
			continue
		}
		for _, i := range spans {
			key := v.H.Spans[i].Key
			for _, h := range refs.At(v.Holds, v.ByKey[key]) {
				if d := min(h.FreeBy, p.Until) - max(h.From, p.From); i != part && d > longest {
					best, longest = finding.LockName(v.H.Keys[key]), d
				}
			}
		}
	}
	return best
}
