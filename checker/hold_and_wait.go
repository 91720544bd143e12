package checker

import (
	"cmp"
	"slices"
	"time"

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
	segment
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
func (v *view) judgeHoldAndWait(o Options, found *findings) {
	if !o.states(promise.MultiKeyBacksOff4s) || o.SimPriorities {
		return
	}
	several := v.multiAcquires()
	if several == nil {
		return
	}
	held := v.pendingHolds(several, o)
	if len(held) == 0 {
		return
	}
	silent := v.outages(o)
	v.longWaits(o.slack(), func(i int32) {
		s := &v.h.Spans[i]
		limit := v.h.Limit(s.Key)
		if s.Op != history.OpAcquire || s.Part || several[i] != nil || limit > 0 && s.Permits > limit {
			return
		}
		for _, k := range held[s.Key] {
			p := longestOutside(segment{max(k.from, s.Call), min(k.until, s.Return)},
				v.clientPauses()[v.client(i)], v.clientPauses()[v.client(k.span)])
			bound := keptWhileHeld
			if silent.touches(p) {
				bound = keptWhileSilent
			}
			if p.until-p.from > bound+o.slack() {
				found.add(finding{rule: holdAndWait, x: k.span, y: i, start: p.from, end: p.until, note: v.waitedFor(k.span, p)})
			}
		}
	})
}

// pendingHolds finds, by key, the times longer than keptWhileHeld in which only one acquire of several keys can have
// had it.
func (v *view) pendingHolds(several map[int32][]int32, o Options) map[int32][]pendingHold {
	e, ends := v.freeTimes().extents, v.endsOf(several)
	marks := make(map[int32][]pendingMark)
	for i, end := range ends {
		s := &v.h.Spans[i]
		marks[s.Key] = append(marks[s.Key], pendingMark{s.Call, 0, +1, int64(i)}, pendingMark{end, 0, -1, -int64(i)})
	}
	o.Promises |= promise.PerServerFailures // a server that hangs is no reason to keep keys of another one
	found, excuses := make(map[int32][]pendingHold), v.excusesFor(o)
	for key, list := range marks {
		if len(v.resizes()[key].times) > 0 {
			continue
		}
		away := excuses(scope{key: key}).away.windows
		for _, s := range slices.Concat(e.heldBeside(key, ends), v.slowTries(key, o), away) {
			list = append(list, pendingMark{at: s.from, held: +1}, pendingMark{at: s.until, held: -1})
		}
		if all := pendingHoldsIn(list); len(all) > 0 {
			found[key] = all
		}
	}
	return found
}

// endsOf is, by part of an acquire of several keys, when the acquire returned. One that did not is left out: it counts
// as a possible hold.
func (v *view) endsOf(several map[int32][]int32) map[int32]time.Duration {
	ends := make(map[int32]time.Duration)
	for _, spans := range several {
		for i, s := range refsAt(v.h.Spans, spans) {
			if s.Ended >= 0 { // an operation of unknown outcome returns never
				ends[i] = s.Return
			}
			if t, is := v.completed()[i]; is {
				ends[i] = t
			}
		}
	}
	return ends
}

// heldBeside are the times in which a client can have had a key, except inside acquires, whose undone grants are not
// known. An acquire of several keys whose outcome is unknown counts from its end, which is in ends.
func (e *extents) heldBeside(key int32, ends map[int32]time.Duration) (held []segment) {
	for _, i := range e.byKey[key] {
		held = append(held, segment{e.holds[i].from, e.freeAt(i)})
	}
	for _, x := range e.possible[key] {
		if x.cause == afterUnknownAcquire {
			if !e.mayHold(&e.h.Spans[x.last]) {
				continue
			}
			x.from = max(x.from, ends[x.last])
		}
		if x.from <= x.until {
			held = append(held, x.segment)
		}
	}
	return held
}

// slowTries are the tries at a key that took longer than the slack: a try of several keys may have had it for as long.
func (v *view) slowTries(key int32, o Options) (slow []segment) {
	for _, s := range refsAt(v.h.Spans, v.rare) {
		if s.Key == key && s.Op == history.OpTry && s.Return-s.Call > o.slack() {
			slow = append(slow, segment{s.Call, s.Return})
		}
	}
	return slow
}

// pendingHoldsIn goes through the marks of a key in the order of time.
func pendingHoldsIn(marks []pendingMark) (all []pendingHold) {
	slices.SortFunc(marks, func(a, b pendingMark) int { return cmp.Compare(a.at, b.at) })
	held, pending, span := 0, 0, int64(0)
	now := pendingHold{span: none}
	for n, m := range marks {
		held, pending, span = held+m.held, pending+m.pending, span+m.span
		if n+1 < len(marks) && marks[n+1].at == m.at {
			continue
		}
		by := none
		if held == 0 && pending == 1 {
			by = int32(span)
		}
		if by == now.span {
			continue
		}
		if now.until = m.at; now.span != none && now.until-now.from > keptWhileHeld {
			all = append(all, now)
		}
		now = pendingHold{segment{m.at, never}, by}
	}
	return all
}

// waitedFor names the other key of an acquire of several keys that was held for the longest part of p.
func (v *view) waitedFor(part int32, p segment) string {
	best, longest := "another one", time.Duration(0)
	for _, spans := range v.multiAcquires() {
		if !slices.Contains(spans, part) {
			continue
		}
		for _, i := range spans {
			key := v.h.Spans[i].Key
			for _, h := range refsAt(v.holds, v.byKey[key]) {
				if d := min(h.freeBy, p.until) - max(h.from, p.from); i != part && d > longest {
					best, longest = lockName(v.h.Keys[key]), d
				}
			}
		}
	}
	return best
}
