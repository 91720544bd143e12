package checker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/property"
)

// BenchmarkTraffic judges each shape of traffic: without promises, and by every rule. It prints the processor time of
// the judgement by all properties except the search, which has its own limit; the time of the slowest property alone,
// including results that others share; and the growth from a history with a tenth of the events. The numbers are in
// docs/contributors/measurements.md.
func BenchmarkTraffic(b *testing.B) {
	for _, shape := range shapesOfTraffic() {
		for _, every := range []bool{false, true} {
			name, o := shape.name+"/plain", property.Options{Search: -1}
			if every {
				name, o.Promises = shape.name+"/promises", everyPromise()
			}
			small := time.Duration(0)
			for _, events := range []int{100_000, 1_000_000} {
				b.Run(fmt.Sprintf("%s/%dk", name, events/1000), func(b *testing.B) {
					took := shape.benchmark(b, events, o)
					if small > 0 {
						b.ReportMetric(float64(took)/float64(small), "times-the-smaller")
					}
					small = took
				})
			}
		}
	}
}

// benchmark judges a history of that many events, and returns the processor time of one judgement.
func (t traffic) benchmark(b *testing.B, events int, o property.Options) time.Duration {
	h := t.history(events)
	begin := cpuTime(b)
	for b.Loop() {
		if j := Judge(h, o); len(j.Results) == 0 {
			b.Fatal(j.Sentence)
		}
	}
	took := (cpuTime(b) - begin) / time.Duration(b.N)
	b.ReportMetric(took.Seconds(), "cpu-s/judgement")
	with := given.Options{Options: o, Values: h.Samples}
	var slowest property.Name
	longest := time.Duration(0)
	for _, s := range Catalog() {
		v := bounds.New(h, with)
		begin := cpuTime(b)
		s.safely(v, with.ForProperty(s.Name))
		if alone := cpuTime(b) - begin; alone > longest {
			slowest, longest = s.Name, alone
		}
	}
	b.ReportMetric(longest.Seconds(), "cpu-s/slowest")
	b.Logf("slowest property: %s", slowest)
	return took
}

// TestTraffic judges each shape, so that the benchmark is known to measure its subject: each is a history without
// problems, and each property judges it to the end.
func TestTraffic(t *testing.T) {
	for _, shape := range shapesOfTraffic() {
		h := shape.history(4000)
		if h.Events < 4000 || len(h.Problems) > 0 {
			t.Errorf("%s: %d events, problems %v", shape.name, h.Events, h.Problems)
		}
		for _, o := range []property.Options{{Search: -1}, {Search: -1, Promises: everyPromise()}} {
			for _, r := range Judge(h, o).Results {
				if strings.Contains(r.Summary, "defect of the checker") {
					t.Errorf("%s: %s: %s", shape.name, r.Property, r.Summary)
				}
			}
		}
	}
}
