package checker

import (
	"sort"
	"time"

	"github.com/lockchaos/lockchaos/internal/search"
)

// sweepTries visits the refused tries that no holder can have caused; see sweep.
func (v *view) sweepTries(k *keyOps, slack time.Duration, visit func(flaw)) {
	holds := v.byKey[k.key]
	used := 0 // acquires of unknown outcome that explain earlier gaps
	var open []int32
	for n := 0; n < len(k.busy); {
		gap := v.gapOf(holds, k.busy[n], slack)
		first := never // return of the tries in this gap that no hold explains
		open = open[:0]
		for ; n < len(k.busy) && v.gapOf(holds, k.busy[n], slack) == gap; n++ {
			if s := &v.h.Spans[k.busy[n]]; !v.neighborExplains(holds, gap, segment{s.Call, s.Return}, slack) {
				open = append(open, k.busy[n])
				first = min(first, later(s.Return, slack))
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
		for i, s := range refsAt(v.h.Spans, open) {
			visit(flaw{x: -1, y: i, kind: search.OpBusyTry, segment: segment{s.Call, s.Return}})
		}
	}
}

// gapOf is how many of the holds had certainly begun before a try.
func (v *view) gapOf(holds []int32, try int32, slack time.Duration) int {
	t := v.h.Spans[try].Call - slack
	return sort.Search(len(holds), func(n int) bool { return v.holds[holds[n]].from > t })
}

// neighborExplains reports whether a hold beside a gap can have lasted into a try, or begun in it.
func (v *view) neighborExplains(holds []int32, gap int, try segment, slack time.Duration) bool {
	for m := gap; m < len(holds) && v.tied(holds[m], holds[gap]); m++ {
		if v.holds[holds[m]].asked <= later(try.until, slack) {
			return true
		}
	}
	for m := gap - 1; m >= 0 && v.tied(holds[m], holds[gap-1]); m-- {
		if later(v.holds[holds[m]].freeBy, slack) >= try.from {
			return true
		}
	}
	return false
}

// tied reports whether two holds that do not overlap may come in any order: they have no length, at one instant.
func (v *view) tied(i, j int32) bool {
	x, y := &v.holds[i], &v.holds[j]
	return x.from == y.from && x.core == y.core
}
