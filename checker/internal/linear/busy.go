// Package linear judges whether the operations on each key have a legal order.
package linear

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/refs"
	"github.com/lockchaos/lockchaos/checker/internal/segment"
	"github.com/lockchaos/lockchaos/internal/search"
)

// sweepTries visits the refused tries that no holder can have caused; see sweep.
func sweepTries(v *bounds.View, k *KeyOps, slack time.Duration, visit func(Flaw)) {
	holds := v.ByKey[k.key]
	used := 0 // acquires of unknown outcome that explain earlier gaps
	var open []int32
	for n := 0; n < len(k.Busy); {
		gap := gapOf(v, holds, k.Busy[n], slack)
		first := segment.Never // return of the tries in this gap that no hold explains
		open = open[:0]
		for ; n < len(k.Busy) && gapOf(v, holds, k.Busy[n], slack) == gap; n++ {
			if s := &v.H.Spans[k.Busy[n]]; !neighborExplains(v, holds, gap, segment.Of(s.Call, s.Return), slack) {
				open = append(open, k.Busy[n])
				first = min(first, segment.Later(s.Return, slack))
			}
		}
		if len(open) == 0 {
			continue
		}
		asked := sort.Search(len(k.unknownLeased), func(n int) bool { return k.unknownLeased[n] > first })
		switch {
		case asked > used:
			used++
			continue
		case gap == len(holds) && k.unknownNoLease <= first:
			continue
		}
		for i, s := range refs.At(v.H.Spans, open) {
			visit(Flaw{X: -1, y: i, Kind: search.OpBusyTry, Segment: segment.Of(s.Call, s.Return)})
		}
	}
}

// gapOf is how many of the holds had certainly begun before a try.
func gapOf(v *bounds.View, holds []int32, try int32, slack time.Duration) int {
	t := v.H.Spans[try].Call - slack
	return sort.Search(len(holds), func(n int) bool { return v.Holds[holds[n]].From > t })
}

// neighborExplains reports whether a hold beside a gap can have lasted into a try, or begun in it.
func neighborExplains(v *bounds.View, holds []int32, gap int, try segment.Segment, slack time.Duration) bool {
	for m := gap; m < len(holds) && tied(v, holds[m], holds[gap]); m++ {
		if v.Holds[holds[m]].Asked <= segment.Later(try.Until, slack) {
			return true
		}
	}
	for m := gap - 1; m >= 0 && tied(v, holds[m], holds[gap-1]); m-- {
		if segment.Later(v.Holds[holds[m]].FreeBy, slack) >= try.From {
			return true
		}
	}
	return false
}

// tied reports whether two holds that do not overlap may come in any order: they have no length, at one instant.
func tied(v *bounds.View, i, j int32) bool {
	x, y := &v.Holds[i], &v.Holds[j]
	return x.From == y.From && x.Core == y.Core
}
