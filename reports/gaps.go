package reports

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
)

// How near to a moment of a fault a look at the nodes counts as around it, and
// how long a time without a look may be there. A fault and what follows from it
// are often over within tens of milliseconds; whoever looks less often than
// wideGap sees one state where there were two.
const (
	aroundFault = 100 * time.Millisecond
	wideGap     = 20 * time.Millisecond
)

// gaps is how long each node went without being looked at. What a node was in
// between is not known, however short the gap; so the page says how short it was.
type gaps struct {
	Median  time.Duration `json:"median_ns"`
	Largest time.Duration `json:"largest_ns"`
	Node    string        `json:"largest_at"`       // of the largest one
	Faults  time.Duration `json:"around_faults_ns"` // the largest one around a fault; 0 if there was no fault
}

// findGaps measures the times between two samples of one node, as they were
// written. Nil if no node was looked at twice.
func findGaps(w *witness, faults []faultLife) *gaps {
	var g gaps
	var all []time.Duration
	moments := faultMoments(faults)
	for _, node := range w.nodes {
		samples := w.by[node]
		for i := 1; i < len(samples); i++ {
			between := window{samples[i-1].Time, samples[i].Time}
			all = append(all, between.length())
			if between.length() > g.Largest {
				g.Largest, g.Node = between.length(), node
			}
			if between.length() > g.Faults && near(moments, between) {
				g.Faults = between.length()
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

// faultMoments are the instants at which something was done to the servers, in order.
func faultMoments(faults []faultLife) []time.Duration {
	var all []time.Duration
	for i := range faults {
		all = append(all, faults[i].inject)
		for _, b := range faults[i].bites {
			all = append(all, b.Time)
		}
	}
	slices.Sort(all)
	return all
}

// near says whether a moment is in w, or not further away than aroundFault.
func near(moments []time.Duration, w window) bool {
	i, _ := slices.BinarySearch(moments, w.from-aroundFault)
	return i < len(moments) && moments[i] <= w.until+aroundFault
}

// wide says whether something may have been missed where it matters.
func (g *gaps) wide() bool { return g.Faults > wideGap }

// text is the gaps in a sentence.
func (g *gaps) text() string {
	s := fmt.Sprintf("Each node was looked at every %s (median); the longest time between two looks was %s (%s)",
		format.Duration(g.Median), format.Duration(g.Largest), g.Node)
	if g.Faults == 0 {
		return s + "."
	}
	s += fmt.Sprintf(", and %s within %s of a fault.", format.Duration(g.Faults), format.Duration(aroundFault))
	if g.wide() {
		s += fmt.Sprintf(" That is more than %s: a state that was shorter may have been missed, and a bar at a node may "+
			"begin so much later than what it shows.", format.Duration(wideGap))
	}
	return s
}
