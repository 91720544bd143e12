package timeline

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// TestFaultNames: each name that has room is above the beginning of its band and covers no other one; the others are
// counted, and the count covers none either.
func TestFaultNames(t *testing.T) {
	width := func(s string) vg.Length { return vg.Length(4 * len(s)) }
	limit := area{x1: 100, x2: 500}
	for _, test := range []struct {
		about string
		at    []vg.Length
		rest  string
	}{
		{"apart", []vg.Length{100, 200, 300}, ""},
		{"at once", []vg.Length{200, 200, 201}, ""},
		{"at the end", []vg.Length{499, 500}, ""},
		{"too many", []vg.Length{100, 101, 102, 103, 104, 300, 495, 496, 497, 498}, "more fault"},
	} {
		var names []faultName
		for _, at := range test.at {
			names = append(names, faultName{text: "kill · n1", at: at})
		}
		rest := placeFaultNames(names, width, limit)
		if (rest == "") != (test.rest == "") || !strings.Contains(rest, test.rest) {
			t.Errorf("%s: rest %q", test.about, rest)
		}
		hidden := 0
		covered := map[int][]area{}
		if rest != "" {
			covered[0] = []area{{x1: limit.x2 - width(rest), x2: limit.x2}}
		}
		for _, n := range names {
			if n.row < 0 {
				hidden++
				continue
			}
			a := area{x1: n.x, x2: n.x + width(n.text)}
			if a.x1 < limit.x1 || a.x2 > limit.x2 || a.x1 > n.at+2 {
				t.Errorf("%s: %+v", test.about, n)
			}
			for _, other := range covered[n.row] {
				if a.intersects(other) {
					t.Errorf("%s: %+v covers %+v", test.about, n, other)
				}
			}
			covered[n.row] = append(covered[n.row], a)
		}
		if rest != "" && rest != restOfFaults(hidden) {
			t.Errorf("%s: %q, but %d have no row", test.about, rest, hidden)
		}
	}
}

// TestLogTicks: no tick is beyond the range, and the powers of ten in it have labels.
func TestLogTicks(t *testing.T) {
	for _, until := range []float64{1, 10, 1e3, 1e4, 1e5, 1e6} {
		labels := 0
		for _, tick := range (logTicks{}).Ticks(0.1, until) {
			if tick.Value > 1.01*until || tick.Value < 0.099 {
				t.Errorf("up to %v: %+v", until, tick)
			}
			if tick.Label != "" {
				labels++
			}
		}
		if want := int(math.Round(math.Log10(until))) + 2; labels != want {
			t.Errorf("up to %v: %d labels, want %d", until, labels, want)
		}
	}
}

// TestTicksOfAnyInterval: there are a few, also at the largest times, where the next tick would overflow.
func TestTicksOfAnyInterval(t *testing.T) {
	for _, w := range []evidence.Interval{
		{From: 0, Until: 10 * time.Second}, {From: 3, Until: 5}, {From: 0, Until: math.MaxInt64},
		{From: math.MaxInt64 - 5, Until: math.MaxInt64}, {From: 1.7e18, Until: 1.7e18 + 1e9},
	} {
		all := ticks(w, 6)
		if len(all) == 0 || len(all) > 8 {
			t.Errorf("%v: %d ticks", w, len(all))
		}
		for i, at := range all {
			if at < w.From || at > w.Until || i > 0 && at <= all[i-1] {
				t.Errorf("%v: ticks %v", w, all)
			}
		}
	}
}

// TestFaultLabelBesideItsBar: a name that fits neither into its bar nor right of it ends left of the whole bar, also of
// the part before the effect.
func TestFaultLabelBesideItsBar(t *testing.T) {
	tl := &Timeline{D: &drawing{Window: evidence.Interval{From: 0, Until: msT(1000)}, left: axisLeft, right: axisRight}}
	tl.faultLabel(evidence.Interval{From: msT(960), Until: msT(1000)}, []history.Fault{{Time: msT(990)}},
		[]string{"jitter · client 0"})
	want := fmt.Sprintf(`<text x="%.1f"`, tl.D.x(msT(960))-6)
	if got := tl.D.b.String(); !strings.Contains(got, want) || !strings.Contains(got, "jitter") {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOverlapLabels(t *testing.T) {
	style := plot.New().X.Tick.Label
	limit := area{x1: 0, x2: 400}
	w := style.Width("401 ms")
	for _, c := range []struct {
		name string
		bars []area
		want []string
	}{
		{"inside", []area{{x1: 10, x2: 100}}, []string{"inside"}},
		{"right of a thin one", []area{{x1: 10, x2: 12}}, []string{"right"}},
		{"left at the edge", []area{{x1: 390, x2: 392}}, []string{"left"}},
		{"beside a neighbor", []area{{x1: 100, x2: 200}, {x1: 201, x2: 203}}, []string{"inside", "right"}},
		{"two thin ones", []area{{x1: 100, x2: 102}, {x1: 103, x2: 105}}, []string{"left", "right"}},
		{"inside another", []area{{x1: 100, x2: 300}, {x1: 120, x2: 280}}, []string{"inside", "none"}},
		{"no room", []area{{x1: 0, x2: 150}, {x1: 152, x2: 154}, {x1: 156, x2: 400}}, []string{"inside", "none", "inside"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			texts := make([]string, len(c.bars))
			for i := range texts {
				texts[i] = "401 ms"
			}
			var got []string
			for i, a := range labelAreas(c.bars, texts, style, limit) {
				got = append(got, where(a, c.bars[i], w))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func where(label, bar area, w vg.Length) string {
	switch {
	case label == area{}:
		return "none"
	case label.x1 >= bar.x1 && label.x2 <= bar.x2:
		return "inside"
	case label.x1 >= bar.x2 && label.x2-label.x1 >= w-0.01:
		return "right"
	case label.x2 <= bar.x1:
		return "left"
	}
	return "on the edge"
}

// TestLabelsAreClearOfMarkers: a label in a bar ends before the halo of a marker at either end of it.
func TestLabelsAreClearOfMarkers(t *testing.T) {
	const token, halo = "1795466250574136", 9
	for width := range 200 {
		d := &drawing{Window: evidence.Interval{From: 0, Until: msT(1000)}, left: 0, right: 1000}
		d.labelBar(evidence.Interval{From: msT(100), Until: msT(100 + float64(width))}, 0, "", token)
		written := strings.Contains(d.b.String(), token)
		if fits := textWidth(token)+2*halo <= float64(width); written && !fits || written &&
			!strings.Contains(d.b.String(), `x="110.0"`) {
			t.Errorf("a bar of %d px: %s", width, d.b.String())
		}
		if width == 199 && !written {
			t.Error("there was room for the label")
		}
	}
}

func msT(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }
