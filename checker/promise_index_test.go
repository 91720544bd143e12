package checker

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
		v := newView(h, Options{})
		x := newPromiseIndex(v)
		for i := range v.holds {
			h := &v.holds[i]
			got := x.of(h)
			if diff := gocmp.Diff(promisesOf(v, h), slices.Clone(got), cmpopts.EquateEmpty(),
				gocmp.AllowUnexported(receivedPromise{})); diff != "" {
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
func promisesOf(v *view, h *hold) (list []receivedPromise) {
	for effect := -int32(len(v.h.Notices)); effect < int32(len(v.h.Spans)); effect++ {
		p, is := v.promiseOf(effect)
		if is && v.ownerOf(effect) == (ownerKey{h.owner, h.key}) && p.at >= h.from && p.at < h.until &&
			(p.reader == h.reader || !p.reader && p.kind == promiseOver) {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b receivedPromise) int { return cmp.Compare(a.event, b.event) })
	return list
}
