package bounds

import (
	"time"
)

// This file finds lost grants: a fault changed the data of servers, and before the end of the promise to a holder they
// no longer had its hold, which nobody had released. A server without the hold grants the lock to the next client that
// requests it. If somebody asked in time, two clients held the lock, and other properties are
// violated. If nobody did, the run has not shown that the lock is safe, so [property.Exercised] is undecided; of a lock
// that states that it keeps its grants ([promise.KeepsGrants]), [property.Honesty] is violated in both cases, unless
// the fault removed data by itself.
//
// Samples decide if they show the hold; otherwise the reply of the lock does, which refused the holder a release or a
// renewal because it did not hold the lock.

// PermitsAt is how many permits of some holds clients rely on at t.
func (v *View) PermitsAt(holds []int32, t time.Duration) (sum int64) {
	for _, i := range holds {
		if t < v.Holds[i].Until {
			sum += v.OutAt(i, t)
		}
	}
	return sum
}

// OutAt is how many permits of hold i its owner relies on at t.
func (v *View) OutAt(i int32, t time.Duration) int64 {
	n := v.Weight(i)
	for _, p := range v.Parts[i] {
		if p.At <= t {
			n -= int64(p.Permits)
		}
	}
	return n
}
