package checker

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/claims"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/internal/ledger"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// TestPromiseIndex compares the promises that the index finds for each hold with the results of a search of all
// effects. Notices are dated back, some of them to before the hold.
func TestPromiseIndex(t *testing.T) {
	race.Skip(t)
	found := 0
	for seed := range uint64(random(300)) {
		r := rand.New(rand.NewPCG(seed, 5))
		h := renewedHistory(r, 60, 1+r.IntN(4), 1+r.IntN(3))
		for i := range h.Notices {
			h.Notices[i].Time -= min(h.Notices[i].Time, time.Duration(r.IntN(12)))
			h.Notices[i].Valid = h.Notices[i].Time + 20
		}
		v := bounds.New(h, given.Options{})
		x := claims.NewPromiseIndex(v)
		for i := range v.Holds {
			h := &v.Holds[i]
			got := x.Of(h)
			if diff := gocmp.Diff(promisesOf(v, h), slices.Clone(got), cmpopts.EquateEmpty(),
				gocmp.AllowUnexported(claims.ReceivedPromise{})); diff != "" {
				t.Fatalf("seed %d, hold %d (-want +got):\n%s", seed, i, diff)
			}
			found += len(got)
		}
	}
	if found == 0 {
		t.Error("no hold was promised")
	}
}

// promisesOf are the promises about a hold, in the order of their events.
func promisesOf(v *bounds.View, h *ledger.Hold) (list []claims.ReceivedPromise) {
	for effect := -int32(len(v.H.Notices)); effect < int32(len(v.H.Spans)); effect++ {
		p, is := claims.PromiseOf(v, effect)
		if is && claims.OwnerOf(v, effect) == (h.At()) && p.At >= h.From &&
			p.At < h.Until &&
			(p.Reader == h.Reader || !p.Reader && p.Kind == claims.PromiseOver) {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b claims.ReceivedPromise) int { return cmp.Compare(a.Event, b.Event) })
	return list
}
