package bounds

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/promise"
)

// This file is about acquires of several keys (multi-acquires). They wait until all of their keys are free, and may
// keep one of the keys from others while they wait for the rest.

// matchMultiWaits finds the longest time in which an acquire of several keys waited and all of them were free, and adds
// it as a gap. gaps returns the gaps of a key.
func (d *FreeTimes) matchMultiWaits(v *View, spans []int32, slack time.Duration, gaps func(key int32) []freeInterval) {
	s := &v.H.Spans[spans[0]]
	best := freeInterval{Segment: segment.Of(s.Call, s.Return), Key: s.Key, Last: refs.None}
	for n, i := range spans {
		longest := freeInterval{}
		for _, g := range gaps(v.H.Spans[i].Key) {
			if n > 0 && g.From < best.From { // the key that became free last says why it was free
				g.Last, g.Cause, g.Key = best.Last, best.Cause, best.Key
			}
			g.Segment = segment.Of(max(g.From, best.From), min(g.Until, best.Until))
			if g.Until-g.From > longest.Until-longest.From {
				longest = g
			}
		}
		best = longest
	}
	if best.Until-best.From <= slack {
		best = d.longestNothingHeld(v, spans)
	}
	if best.Until-best.From > slack {
		d.Gaps = append(d.Gaps, best)
		d.Waits = append(d.Waits, wait{int32(len(d.Gaps) - 1), spans[0]})
	}
}

// longestNothingHeld finds the longest time in which an acquire of several keys waited and no client held any key. A
// lock that takes the keys one after the other may have had some of them for others, whose acquires were in flight:
// these wait for each other then, because nobody else is in the way of all of them.
func (d *FreeTimes) longestNothingHeld(v *View, spans []int32) (best freeInterval) {
	s := &v.H.Spans[spans[0]]
	best = freeInterval{Key: s.Key, Last: refs.None}
	for _, g := range d.nothingHeld() {
		if p := (segment.Of(max(g.From, s.Call), min(g.Until, s.Return))); p.Until-p.From > best.Until-best.From {
			best.Segment = p
		}
	}
	for _, i := range spans { // the hold that ended last says why they are free
		for n, h := range refs.At(v.Holds, v.ByKey[v.H.Spans[i].Key]) {
			if h.FreeBy > best.From || best.Last != refs.None && h.FreeBy <= v.Holds[best.Last].FreeBy {
				continue
			}
			best.Last, best.Key, best.Cause = n, h.Key, AfterRelease
		}
	}
	return best
}

// timesNothingHeld finds the times in which no client can have held any key, except one whose acquire was in flight,
// and no fault was in force in the slack before.
func (d *FreeTimes) timesNothingHeld(v *View, slack time.Duration) (nobody []segment.Segment) {
	var held []segment.Segment
	for key := range v.ByKey {
		held = append(held, d.Extents.HeldBeside(int32(key), nil)...)
	}
	for _, f := range v.FaultTimes() {
		if f.Affects != history.AffectsDelays {
			held = append(held, segment.Of(f.From, segment.Later(f.Until, slack)))
		}
	}
	slices.SortFunc(held, func(a, b segment.Segment) int { return cmp.Compare(a.From, b.From) })
	segment.EachOutside(segment.Of(0, v.H.End), held, func(part segment.Segment) { nobody = append(nobody, part) })
	return nobody
}

// byGap sorts waits by gap and acquire.
func byGap(a, b wait) int { return cmp.Or(cmp.Compare(a.Gap, b.Gap), cmp.Compare(a.Span, b.Span)) }

// KeptByMultiAcquires returns a function that finds the times in which other acquires of several keys may have kept a
// key of an acquire: they were in flight, and waited perhaps for another key, because some client may have held one or
// a fault was in force. A fair lock keeps it only for earlier acquires. A lock that states that it backs off reports
// the keys that it gave back (undone), and may not keep one for long.
func (v *View) KeptByMultiAcquires(o given.Options) func(i int32) []segment.Segment {
	several := v.MultiAcquires()
	if several == nil || o.States(promise.MultiKeyBacksOff4s) {
		return func(int32) []segment.Segment { return nil }
	}
	of, parts, ends := make(map[int32]int32), make(map[int32][]int32), v.EndsOf(several)
	for first, spans := range several {
		for _, i := range spans {
			key := v.H.Spans[i].Key
			of[i], parts[key] = first, append(parts[key], i)
		}
	}
	nobody := v.FreeTimes().nothingHeld()
	return func(i int32) (kept []segment.Segment) {
		own := several[i]
		if own == nil {
			own = []int32{i}
		}
		s := &v.H.Spans[i]
		for _, mine := range own {
			for _, part := range parts[v.H.Spans[mine].Key] {
				x := segment.Of(v.H.Spans[part].Call, ends[part])
				behind := o.States(promise.Fair) && x.From > segment.Later(s.Call, o.QueueDelay())
				if of[part] != i && !behind && x.From < s.Return && s.Call < x.Until {
					segment.EachOutside(x, nobody, func(part segment.Segment) { kept = append(kept, part) })
				}
			}
		}
		return kept
	}
}

// EndsOf is, by part of an acquire of several keys, when the acquire returned. One that did not is left out: it counts
// as a possible hold.
func (v *View) EndsOf(several map[int32][]int32) map[int32]time.Duration {
	ends := make(map[int32]time.Duration)
	for _, spans := range several {
		for i, s := range refs.At(v.H.Spans, spans) {
			if s.Ended >= 0 { // an operation of unknown outcome returns never
				ends[i] = s.Return
			}
			if t, is := v.Completed()[i]; is {
				ends[i] = t
			}
		}
	}
	return ends
}

// HeldBeside are the times in which a client can have had a key, except inside acquires, whose undone grants are not
// known. An acquire of several keys whose outcome is unknown counts from its end, which is in ends.
func (e *Extents) HeldBeside(key int32, ends map[int32]time.Duration) (held []segment.Segment) {
	for _, i := range e.ByKey[key] {
		held = append(held, segment.Of(e.Holds[i].From, e.FreeAt(i)))
	}
	for _, x := range e.Possible[key] {
		if x.Cause == AfterUnknownAcquire {
			if !e.mayHold(&e.H.Spans[x.Last]) {
				continue
			}
			x.From = max(x.From, ends[x.Last])
		}
		if x.From <= x.Until {
			held = append(held, x.Segment)
		}
	}
	return held
}
