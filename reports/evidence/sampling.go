package evidence

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// Within nearFault of a fault, a node should be sampled at least every wideGap: a
// fault and its consequences are often over within tens of milliseconds, and a
// wider gap can hide a state.
const (
	nearFault = 100 * time.Millisecond
	wideGap   = 20 * time.Millisecond
)

// SamplingGaps is how long nodes were not sampled. The state of a node between
// two samples is unknown, so the page says how long the gaps were.
type SamplingGaps struct {
	Median     time.Duration `json:"median_ns"`
	Largest    time.Duration `json:"largest_ns"`
	Node       string        `json:"largest_at"`     // with the largest gap
	NearFaults time.Duration `json:"near_faults_ns"` // the largest gap near a fault; 0 without a fault
}

// measureGaps measures the times between two samples of one node. Nil if no node
// was sampled twice.
func measureGaps(w *witness, faults []Fault) *SamplingGaps {
	var g SamplingGaps
	var all []time.Duration
	times := faultTimes(faults)
	for _, node := range w.Nodes {
		samples := w.Samples[node]
		for i := 1; i < len(samples); i++ {
			between := Interval{samples[i-1].Time, samples[i].Time}
			all = append(all, between.Length())
			if between.Length() > g.Largest {
				g.Largest, g.Node = between.Length(), node
			}
			if between.Length() > g.NearFaults && anyNear(times, between) {
				g.NearFaults = between.Length()
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	g.Median = all[len(all)/2]
	return &g
}

// faultTimes are the times of injections and effects, in order.
func faultTimes(faults []Fault) []time.Duration {
	var all []time.Duration
	for i := range faults {
		all = append(all, faults[i].Inject)
		for _, e := range faults[i].Effects {
			all = append(all, e.Time)
		}
	}
	slices.Sort(all)
	return all
}

// anyNear reports whether one of times is in w or within nearFault of it.
func anyNear(times []time.Duration, w Interval) bool {
	i, _ := slices.BinarySearch(times, w.From-nearFault)
	return i < len(times) && times[i] <= w.Until+nearFault
}

// Wide reports whether the gaps near faults can hide a state.
func (g *SamplingGaps) Wide() bool { return g.NearFaults > wideGap }

// Text says how often the nodes were sampled.
func (g *SamplingGaps) Text() string {
	s := fmt.Sprintf("Each node was sampled every %s (median); the longest gap between two samples was %s (%s)",
		format.Duration(g.Median), format.Duration(g.Largest), g.Node)
	if g.NearFaults == 0 {
		return s + "."
	}
	s += fmt.Sprintf(", and %s within %s of a fault.", format.Duration(g.NearFaults), format.Duration(nearFault))
	if g.Wide() {
		s += fmt.Sprintf(" That is more than %s: shorter states may have been missed, and the bar of a node may start "+
			"that much late.", format.Duration(wideGap))
	}
	return s
}
