package reports

import (
	"math"
	"testing"
	"time"
)

// TestTicksOfAnyInterval: there are a few, also at the largest times, where the next tick would overflow.
func TestTicksOfAnyInterval(t *testing.T) {
	for _, w := range []interval{
		{0, 10 * time.Second}, {3, 5}, {0, math.MaxInt64}, {math.MaxInt64 - 5, math.MaxInt64}, {1.7e18, 1.7e18 + 1e9},
	} {
		all := ticks(w, 6)
		if len(all) == 0 || len(all) > 8 {
			t.Errorf("%v: %d ticks", w, len(all))
		}
		for i, at := range all {
			if at < w.from || at > w.until || i > 0 && at <= all[i-1] {
				t.Errorf("%v: ticks %v", w, all)
			}
		}
	}
}
