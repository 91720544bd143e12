package ledger

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/segment"
)

// TestPromises compares the search among many promises with a scan of all of them.
func TestPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	draw := func() *Hold {
		h := &Hold{From: time.Duration(r.IntN(5)), Until: segment.Never}
		h.Valid = h.From + time.Duration(r.IntN(4))
		for at := h.Valid; r.IntN(5) > 0; {
			at += time.Duration(1 + r.IntN(4))
			h.promise(at, at+time.Duration(1+r.IntN(4)))
			at = h.Extra().LaterPromises[len(h.Extra().LaterPromises)-1].Until
		}
		return h
	}
	within := func(h *Hold, at time.Duration) (now bool, lapsed time.Duration) {
		lapsed = segment.Never
		for i := -1; i < len(h.Extra().LaterPromises); i++ {
			p := h.Promises(i)
			now = now || p.From <= at && at < p.Until
			if p.Until <= at {
				lapsed = p.Until
			}
		}
		return now, lapsed
	}
	for range 20_000 {
		x, y, at := draw(), draw(), time.Duration(r.IntN(40))
		if now, lapsed := within(x, at); x.PromisedAt(at) != now || x.Lapsed(at) != lapsed {
			t.Fatalf("%+v at %d: promised %v, lapsed %d; want %v, %d", x, at, x.PromisedAt(at), x.Lapsed(at), now, lapsed)
		}
		best, end := time.Duration(0), at+time.Duration(r.IntN(20))
		for i := -1; i < len(x.Extra().LaterPromises); i++ {
			for j := -1; j < len(y.Extra().LaterPromises); j++ {
				a, b := x.Promises(i), y.Promises(j)
				best = max(best, min(a.Until, b.Until, end)-max(a.From, b.From, at))
			}
		}
		if s := bothPromised(x, y, at, end); s.Until-s.From != best {
			t.Fatalf("%+v and %+v in %d to %d: %v, want %d", x, y, at, end, s, best)
		}
	}
}
