package checker

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestPromises compares the search among many promises with a scan of all of them.
func TestPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	draw := func() *hold {
		h := &hold{from: time.Duration(r.IntN(5)), until: never}
		h.valid = h.from + time.Duration(r.IntN(4))
		for at := h.valid; r.IntN(5) > 0; {
			at += time.Duration(1 + r.IntN(4))
			h.promise(at, at+time.Duration(1+r.IntN(4)))
			at = h.extra().laterPromises[len(h.extra().laterPromises)-1].until
		}
		return h
	}
	within := func(h *hold, at time.Duration) (now bool, lapsed time.Duration) {
		lapsed = never
		for i := -1; i < len(h.extra().laterPromises); i++ {
			p := h.promises(i)
			now = now || p.from <= at && at < p.until
			if p.until <= at {
				lapsed = p.until
			}
		}
		return now, lapsed
	}
	for range 20_000 {
		x, y, at := draw(), draw(), time.Duration(r.IntN(40))
		if now, lapsed := within(x, at); x.promisedAt(at) != now || x.lapsed(at) != lapsed {
			t.Fatalf("%+v at %d: promised %v, lapsed %d; want %v, %d", x, at, x.promisedAt(at), x.lapsed(at), now, lapsed)
		}
		best, end := time.Duration(0), at+time.Duration(r.IntN(20))
		for i := -1; i < len(x.extra().laterPromises); i++ {
			for j := -1; j < len(y.extra().laterPromises); j++ {
				a, b := x.promises(i), y.promises(j)
				best = max(best, min(a.until, b.until, end)-max(a.from, b.from, at))
			}
		}
		if s := bothPromised(x, y, at, end); s.until-s.from != best {
			t.Fatalf("%+v and %+v in %d to %d: %v, want %d", x, y, at, end, s, best)
		}
	}
}
