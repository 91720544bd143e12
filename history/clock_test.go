package history_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
)

// TestAbsoluteTimesAreRelativeToTheFirstEvent in every way to read a history.
func TestAbsoluteTimesAreRelativeToTheFirstEvent(t *testing.T) {
	const wall = int64(1_700_000_000_000_000_000)
	for _, c := range []struct {
		name  string
		times []int64
		want  time.Duration // end of the history
	}{
		{"since the start", []int64{5, 7}, 7},
		{"since 1970", []int64{wall, wall + 3}, 3},
		{"the largest times", []int64{math.MaxInt64, math.MaxInt64}, 0},
		{"a jump to the largest time", []int64{0, math.MaxInt64}, 10 * 365 * 24 * time.Hour},
		{"back before the first", []int64{wall, wall - 5}, 0},
	} {
		var text strings.Builder
		for i, at := range c.times {
			kind := []string{"invoke", "ok"}[i]
			fmt.Fprintf(&text, `{"index":%d,"time":%d,"type":%q,"process":0,"f":"acquire","key":"k"}`+"\n", i, at, kind)
		}
		h, err := history.ReadAll(strings.NewReader(text.String()), c.name)
		if err != nil || h.End != c.want {
			t.Errorf("%s, ReadAll: end %v, want %v; %v", c.name, h.End, c.want, err)
		}
		h, _, err = foreign.Read(strings.NewReader(text.String()), c.name, foreign.Options{})
		if err != nil || h.End != c.want {
			t.Errorf("%s, foreign.Read: end %v, want %v; %v", c.name, h.End, c.want, err)
		}
	}
}
