package bounds

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/segment"
)

// ExtentSums are the bounds of the holds of a key, for each number n of holds in the order of their grants.
type ExtentSums struct {
	LastEnd  []time.Duration // until when the first n holds can have lasted
	NextCall []time.Duration // from when on the holds after the first n can have begun
}

func (v *View) ExtentSumsOf(holds []int32) ExtentSums {
	r := ExtentSums{make([]time.Duration, len(holds)+1), make([]time.Duration, len(holds)+1)}
	r.LastEnd[0], r.NextCall[len(holds)] = -1, segment.Never
	for n, i := range holds {
		r.LastEnd[n+1] = max(r.LastEnd[n], v.Holds[i].FreeBy)
		if v.Holds[i].Extra().MaybeLeft {
			r.LastEnd[n+1] = segment.Never
		}
	}
	for n := len(holds) - 1; n >= 0; n-- {
		r.NextCall[n] = min(r.NextCall[n+1], v.Holds[holds[n]].Asked)
	}
	return r
}
