package sessiontest

import (
	"slices"
	"testing"
	"time"
)

// Pair is how a benchmark acquires and releases a lock.
type Pair struct {
	Name             string
	Acquire, Release func() error
}

const block = 10 // pairs of one lock before the next lock has its turn

// Alternate measures locks on the same servers, a few pairs of each in turn, so that nothing else changes from one lock
// to another. It reports the median of the acquires and of the releases of each, in microseconds.
func Alternate(b *testing.B, locks ...Pair) {
	b.Helper()
	acquires, releases := make([][]time.Duration, len(locks)), make([][]time.Duration, len(locks))
	timed := func(do func() error) time.Duration {
		began := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	for b.Loop() {
		for i, l := range locks {
			for range block {
				acquires[i] = append(acquires[i], timed(l.Acquire))
				releases[i] = append(releases[i], timed(l.Release))
			}
		}
	}
	for i, l := range locks {
		b.ReportMetric(median(acquires[i]), l.Name+"-acquire-µs")
		b.ReportMetric(median(releases[i]), l.Name+"-release-µs")
	}
}

// median is in microseconds.
func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2]) / float64(time.Microsecond)
}
