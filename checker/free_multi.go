package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// This file is about acquires of several keys (multi-acquires). They wait until all of their keys are free, and may
// keep one of the keys from others while they wait for the rest.

// findMultiAcquires finds the acquires of several keys: the spans of each by the first.
func (v *view) findMultiAcquires() (of map[int32][]int32) {
	var last map[history.Process]int32 // the first span of the latest operation of a process
	for _, i := range v.rare {
		if v.h.Spans[i].Part {
			last = make(map[history.Process]int32)
			break
		}
	}
	if last == nil {
		return nil
	}
	of = make(map[int32][]int32)
	for i, s := range refs(v.h.Spans) {
		if !s.Part {
			last[s.Process] = i
			continue
		}
		first, known := last[s.Process]
		if !known || s.Op != history.OpAcquire {
			continue
		}
		if len(of[first]) == 0 {
			of[first] = []int32{first}
		}
		of[first] = append(of[first], i)
	}
	return of
}

// matchMultiWaits finds the longest time in which an acquire of several keys waited and all of them were free, and adds
// it as a gap. gaps returns the gaps of a key.
func (d *freeTimes) matchMultiWaits(v *view, spans []int32, slack time.Duration, gaps func(key int32) []freeInterval) {
	s := &v.h.Spans[spans[0]]
	best := freeInterval{segment: segment{s.Call, s.Return}, key: s.Key, last: none}
	for n, i := range spans {
		longest := freeInterval{}
		for _, g := range gaps(v.h.Spans[i].Key) {
			if n > 0 && g.from < best.from { // the key that became free last says why it was free
				g.last, g.cause, g.key = best.last, best.cause, best.key
			}
			g.segment = segment{max(g.from, best.from), min(g.until, best.until)}
			if g.until-g.from > longest.until-longest.from {
				longest = g
			}
		}
		best = longest
	}
	if best.until-best.from <= slack {
		best = d.longestNothingHeld(v, spans)
	}
	if best.until-best.from > slack {
		d.gaps = append(d.gaps, best)
		d.waits = append(d.waits, wait{int32(len(d.gaps) - 1), spans[0]})
	}
}

// longestNothingHeld finds the longest time in which an acquire of several keys waited and no client held any key. A
// lock that takes the keys one after the other may have had some of them for others, whose acquires were in flight:
// these wait for each other then, because nobody else is in the way of all of them.
func (d *freeTimes) longestNothingHeld(v *view, spans []int32) (best freeInterval) {
	s := &v.h.Spans[spans[0]]
	best = freeInterval{key: s.Key, last: none}
	for _, g := range d.nothingHeld() {
		if p := (segment{max(g.from, s.Call), min(g.until, s.Return)}); p.until-p.from > best.until-best.from {
			best.segment = p
		}
	}
	for _, i := range spans { // the hold that ended last says why they are free
		for n, h := range refsAt(v.holds, v.byKey[v.h.Spans[i].Key]) {
			if h.freeBy > best.from || best.last != none && h.freeBy <= v.holds[best.last].freeBy {
				continue
			}
			best.last, best.key, best.cause = n, h.key, afterRelease
		}
	}
	return best
}

// timesNothingHeld finds the times in which no client can have held any key, except one whose acquire was in flight,
// and no fault was in force in the slack before.
func (d *freeTimes) timesNothingHeld(v *view, slack time.Duration) (nobody []segment) {
	var held []segment
	for key := range v.byKey {
		held = append(held, d.extents.heldBeside(int32(key), nil)...)
	}
	for _, f := range v.faultTimes() {
		if f.affects != history.AffectsDelays {
			held = append(held, segment{f.from, later(f.until, slack)})
		}
	}
	slices.SortFunc(held, func(a, b segment) int { return cmp.Compare(a.from, b.from) })
	eachOutside(segment{0, v.h.End}, held, func(part segment) { nobody = append(nobody, part) })
	return nobody
}

// byGap sorts waits by gap and acquire.
func byGap(a, b wait) int { return cmp.Or(cmp.Compare(a.gap, b.gap), cmp.Compare(a.span, b.span)) }

// keptByMultiAcquires returns a function that finds the times in which other acquires of several keys may have kept a
// key of an acquire: they were in flight, and waited perhaps for another key, because some client may have held one or
// a fault was in force. A fair lock keeps it only for earlier acquires. A lock that states that it backs off reports
// the keys that it gave back (undone), and may not keep one for long.
func (v *view) keptByMultiAcquires(o Options) func(i int32) []segment {
	several := v.multiAcquires()
	if several == nil || o.states(promise.MultiKeyBacksOff4s) {
		return func(int32) []segment { return nil }
	}
	of, parts, ends := make(map[int32]int32), make(map[int32][]int32), v.endsOf(several)
	for first, spans := range several {
		for _, i := range spans {
			key := v.h.Spans[i].Key
			of[i], parts[key] = first, append(parts[key], i)
		}
	}
	nobody := v.freeTimes().nothingHeld()
	return func(i int32) (kept []segment) {
		own := several[i]
		if own == nil {
			own = []int32{i}
		}
		s := &v.h.Spans[i]
		for _, mine := range own {
			for _, part := range parts[v.h.Spans[mine].Key] {
				x := segment{v.h.Spans[part].Call, ends[part]}
				behind := o.states(promise.Fair) && x.from > later(s.Call, o.queueDelay())
				if of[part] != i && !behind && x.from < s.Return && s.Call < x.until {
					eachOutside(x, nobody, func(part segment) { kept = append(kept, part) })
				}
			}
		}
		return kept
	}
}
