package checker

import (
	"slices"
	"sort"
	"time"
)

// judgeRefusedWhileFree looks for tries that were refused after the last release of a nested hold, when no client can
// have held the lock: every earlier hold had certainly been released, no later one was requested yet, and no acquire of
// unknown outcome can have been granted. Those that need no holder are left out (excuseRefusals).
func (c *holdCounts) judgeRefusedWhileFree() {
	if len(c.deep) == 0 {
		return
	}
	unknown := c.firstUnknown()
	var keys []keyOps
	around := make([]extentSums, len(c.byKey))
	slices.Sort(c.deep)
	for i, s := range refsAt(c.h.Spans, c.rare) {
		if !s.Busy || unknown[s.Key] <= s.Return {
			continue
		}
		if keys == nil {
			keys = c.keyedOps()
			c.excuseRefusals(keys, c.o)
		}
		if keys[s.Key].explained(i) {
			continue
		}
		holds := c.byKey[s.Key]
		n := sort.Search(len(holds), func(n int) bool { return c.holds[holds[n]].from >= s.Call })
		if n == 0 {
			continue
		}
		if around[s.Key].lastEnd == nil {
			around[s.Key] = c.extentSumsOf(holds)
		}
		r := &around[s.Key]
		_, again := slices.BinarySearch(c.deep, c.holds[holds[n-1]].span)
		if again && later(r.lastEnd[n], c.o.ClockError) < s.Call && r.nextCall[n] > later(s.Return, c.o.ClockError) {
			c.found.add(finding{rule: heldTooLong, x: holds[n-1], y: i, start: s.Call, end: s.Return})
		}
	}
}

// extentSums are the bounds of the holds of a key, for each number n of holds in the order of their grants.
type extentSums struct {
	lastEnd  []time.Duration // until when the first n holds can have lasted
	nextCall []time.Duration // from when on the holds after the first n can have begun
}

func (v *view) extentSumsOf(holds []int32) extentSums {
	r := extentSums{make([]time.Duration, len(holds)+1), make([]time.Duration, len(holds)+1)}
	r.lastEnd[0], r.nextCall[len(holds)] = -1, never
	for n, i := range holds {
		r.lastEnd[n+1] = max(r.lastEnd[n], v.holds[i].freeBy)
		if v.holds[i].extra().maybeLeft {
			r.lastEnd[n+1] = never
		}
	}
	for n := len(holds) - 1; n >= 0; n-- {
		r.nextCall[n] = min(r.nextCall[n+1], v.holds[holds[n]].asked)
	}
	return r
}
