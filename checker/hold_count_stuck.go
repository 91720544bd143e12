package checker

import (
	"slices"
	"sort"
	"time"
)

// stuck looks for tries that were refused after the last release of a nested hold, when no client can have held the
// lock: every earlier hold had certainly been released, no later one was requested yet, and no acquire of unknown
// outcome can have been granted. Those that a quorum may refuse without a holder are left out (excuseRefusals).
func (c *holdCounts) stuck() {
	if len(c.deep) == 0 {
		return
	}
	unknown := c.firstUnknown()
	var keys []keyOps
	if c.o.MayBeDown > 0 {
		keys = c.keyedOps()
		c.excuseRefusals(keys, c.o)
	}
	around := make([]reach, len(c.byKey))
	slices.Sort(c.deep)
	for i, s := range refsAt(c.h.Spans, c.rare) {
		if !s.Busy || unknown[s.Key] <= s.Return || keys != nil && keys[s.Key].explained(i) {
			continue
		}
		holds := c.byKey[s.Key]
		n := sort.Search(len(holds), func(n int) bool { return c.holds[holds[n]].from >= s.Call })
		if n == 0 {
			continue
		}
		if around[s.Key].back == nil {
			around[s.Key] = c.reachOf(holds)
		}
		r := &around[s.Key]
		_, again := slices.BinarySearch(c.deep, c.holds[holds[n-1]].span)
		if again && later(r.back[n], c.o.ClockError) < s.Call && r.called[n] > later(s.Return, c.o.ClockError) {
			c.found.add(finding{rule: heldTooLong, x: holds[n-1], y: i, start: s.Call, end: s.Return})
		}
	}
}

// reach is how far the holds of a key can extend into the time between them.
type reach struct {
	back   []time.Duration // until when the first n of them can have lasted
	called []time.Duration // from when on all but the first n can have begun
}

func (v *view) reachOf(holds []int32) reach {
	r := reach{make([]time.Duration, len(holds)+1), make([]time.Duration, len(holds)+1)}
	r.back[0], r.called[len(holds)] = -1, never
	for n, i := range holds {
		r.back[n+1] = max(r.back[n], v.holds[i].freeBy)
	}
	for n := len(holds) - 1; n >= 0; n-- {
		r.called[n] = min(r.called[n+1], v.holds[holds[n]].asked)
	}
	return r
}
