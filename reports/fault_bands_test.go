package reports

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
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

// TestPlotsNameFaults: each plot names the fault that it shades.
func TestPlotsNameFaults(t *testing.T) {
	r := failoverRun("orders").load(t)
	for _, spec := range plotSpecs() {
		var b strings.Builder
		if err := spec.write(r, "svg", &b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"replication-hold · n1", "kill · n1"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s does not name %s", spec.name, want)
			}
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
