package runner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/workloads"
)

func TestInterest(t *testing.T) {
	few := newActiveKeys(workloads.Params{Keys: 2})
	if diff := cmp.Diff([]string{"orders-0", "orders-1"}, few.at(time.Hour)); diff != "" {
		t.Errorf("of few keys every one is looked at (-want +got):\n%s", diff)
	}
	many := newActiveKeys(workloads.Params{Keys: 10_000, Lease: time.Second, Hold: time.Second})
	if keys := many.at(0); len(keys) != 0 {
		t.Errorf("nobody has asked for any key, and it looks at %d", len(keys))
	}
	many.add("orders-7", time.Second)
	many.add("", time.Second)
	for now, want := range map[time.Duration][]string{ // order does not matter until the key is forgotten
		time.Second: {"orders-7"}, 5 * time.Second: {"orders-7"},
	} {
		if diff := cmp.Diff(want, many.at(now)); diff != "" {
			t.Errorf("at %v (-want +got):\n%s", now, diff)
		}
	}
	if keys := many.at(6 * time.Second); len(keys) != 0 {
		t.Errorf("the lease ended long ago, and it still looks at %v", keys)
	}
}
