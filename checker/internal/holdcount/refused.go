package holdcount

import (
	"slices"
	"sort"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/linear"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
)

// judgeRefusedWhileFree looks for tries that were refused after the last release of a nested hold, when no client can
// have held the lock: every earlier hold had certainly been released, no later one was requested yet, and no acquire of
// unknown outcome can have been granted. Those that need no holder are left out (ExcuseRefusals).
func (c *holdCounts) judgeRefusedWhileFree() {
	if len(c.deep) == 0 {
		return
	}
	unknown := c.FirstUnknown()
	var keys []linear.KeyOps
	around := make([]bounds.ExtentSums, len(c.ByKey))
	slices.Sort(c.deep)
	for i, s := range refs.At(c.H.Spans, c.Rare) {
		if !s.Busy || unknown[s.Key] <= s.Return {
			continue
		}
		if keys == nil {
			keys = linear.KeyedOps(c.View)
			linear.ExcuseRefusals(c.View, keys, c.o)
		}
		if keys[s.Key].Explained(i) {
			continue
		}
		holds := c.ByKey[s.Key]
		n := sort.Search(len(holds), func(n int) bool { return c.Holds[holds[n]].From >= s.Call })
		if n == 0 {
			continue
		}
		if around[s.Key].LastEnd == nil {
			around[s.Key] = c.ExtentSumsOf(holds)
		}
		r := &around[s.Key]
		_, again := slices.BinarySearch(c.deep, c.Holds[holds[n-1]].Span)
		if again && segment.Later(r.LastEnd[n], c.o.ClockError) < s.Call &&
			r.NextCall[n] > segment.Later(s.Return, c.o.ClockError) {
			c.found.Add(finding.Finding{Rule: HeldTooLong, X: holds[n-1], Y: i, Start: s.Call, End: s.Return})
		}
	}
}
