package excuse

import (
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/history"
)

// TestDeliveryAfterStall: a request that a stall of the harness held, and then a partition, is delivered when that is
// healed, although the stall is recorded at its end, after the injection of the partition.
func TestDeliveryAfterStall(t *testing.T) {
	fault := func(at time.Duration, name string, v history.FaultValue) history.Fault {
		return history.Fault{Time: at, Name: name, FaultValue: v}
	}
	h := &history.History{Faults: []history.Fault{
		fault(2*time.Second, "partition", history.FaultValue{ID: 1, Phase: history.Injected,
			Affects: history.AffectsTraffic}),
		fault(2500*time.Millisecond, history.HarnessStalled,
			history.FaultValue{Phase: history.Noted, Lasted: 1500 * time.Millisecond}),
		fault(5*time.Second, "partition", history.FaultValue{ID: 1, Phase: history.Healed}),
	}}
	d := Disturbances{Times: New(h, given.Options{}).FaultTimes()}
	for sent, want := range map[time.Duration]time.Duration{
		500 * time.Millisecond: 500 * time.Millisecond, // before both
		time.Second:            5 * time.Second,
		3 * time.Second:        5 * time.Second,
		6 * time.Second:        6 * time.Second,
	} {
		if got := d.DeliveredBy(sent, 0); got != want {
			t.Errorf("sent at %v: delivered by %v, want %v", sent, got, want)
		}
	}
}
