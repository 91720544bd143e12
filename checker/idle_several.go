package checker

import (
	"cmp"
	"time"

	"github.com/lockchaos/lockchaos/history"
)

// This file is about acquires of several keys, which wait until all of them are free.

// severalKeys are the acquires of several keys: the spans of each by the first.
func (v *view) severalKeys() (of map[int32][]int32) {
	var last map[history.Process]int32 // the first span of the latest operation of a process
	for i := range v.h.Spans {
		if v.h.Spans[i].Part {
			last = make(map[history.Process]int32)
			break
		}
	}
	if last == nil {
		return nil
	}
	of = make(map[int32][]int32)
	for i := range v.h.Spans {
		s := &v.h.Spans[i]
		if !s.Part {
			last[s.Process] = int32(i)
			continue
		}
		first, known := last[s.Process]
		if !known || s.Op != history.OpAcquire {
			continue
		}
		if len(of[first]) == 0 {
			of[first] = []int32{first}
		}
		of[first] = append(of[first], int32(i))
	}
	return of
}

// meetAll finds the longest time in which an acquire of several keys waited and all of them were free, and adds it as a
// gap. gaps are those of a key.
func (d *idle) meetAll(v *view, spans []int32, slack time.Duration, gaps func(key int32) []freeInterval) {
	s := &v.h.Spans[spans[0]]
	best := freeInterval{segment: segment{s.Call, s.Return}, key: s.Key, last: none}
	for n, i := range spans {
		longest := freeInterval{}
		for _, g := range gaps(v.h.Spans[i].Key) {
			if n > 0 && g.from < best.from { // what was free last says why it was free
				g.last, g.cause, g.key = best.last, best.cause, best.key
			}
			g.segment = segment{max(g.from, best.from), min(g.until, best.until)}
			if g.until-g.from > longest.until-longest.from {
				longest = g
			}
		}
		best = longest
	}
	if best.until-best.from > slack {
		d.gaps = append(d.gaps, best)
		d.waits = append(d.waits, wait{int32(len(d.gaps) - 1), spans[0]})
	}
}

// byGap sorts waits by gap and acquire.
func byGap(a, b wait) int { return cmp.Or(cmp.Compare(a.gap, b.gap), cmp.Compare(a.span, b.span)) }
