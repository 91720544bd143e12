package witness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/workloads/workload"
)

func TestActiveKeys(t *testing.T) {
	few := newActiveKeys(workload.Params{Keys: 2})
	if diff := cmp.Diff([]string{"orders-0", "orders-1"}, few.at(time.Hour)); diff != "" {
		t.Errorf("all of few keys are sampled (-want +got):\n%s", diff)
	}
	many := newActiveKeys(workload.Params{Keys: 10_000, Lease: time.Second, Hold: time.Second})
	if keys := many.at(0); len(keys) != 0 {
		t.Errorf("%d keys are sampled before any was used", len(keys))
	}
	many.add("orders-7", time.Second)
	many.add("", time.Second)
	for _, now := range []time.Duration{time.Second, 5 * time.Second} {
		if diff := cmp.Diff([]string{"orders-7"}, many.at(now)); diff != "" {
			t.Errorf("at %v (-want +got):\n%s", now, diff)
		}
	}
	if keys := many.at(6 * time.Second); len(keys) != 0 {
		t.Errorf("%v are sampled long after the lease has expired", keys)
	}
}
