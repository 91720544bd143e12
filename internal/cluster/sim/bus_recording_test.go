package sim_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
)

// realBus has recordings of real clusters, one a line.
const realBus = "testdata/real-bus.jsonl"

func shards() cluster.Topology { return cluster.Topology{Kind: cluster.Sharded} }

func recordSimulatedBus(w *world) (recording, error) { return newObserver(w.ctx, w.Cluster).run() }

// TestTheSimulatedBusBehavesAsRecorded compares the reports of every node of simulated clusters with recordings of real
// ones, event by event: the changes, their order, their times, and the end.
func TestTheSimulatedBusBehavesAsRecorded(t *testing.T) {
	live := readRecordings(t, realBus)
	simulated := recordSimulated(t, sim.Config{Topology: shards(), Password: "p"}, recordSimulatedBus)
	if t.Failed() {
		return
	}
	compareRecordings(t, live, simulated, bounds(), recorded.breaks)
}

// TestARealClusterEndsAsSimulated records a real cluster now. How a busy machine orders independent changes is not
// judged, nor is how long it takes.
func TestARealClusterEndsAsSimulated(t *testing.T) {
	version, err := process.Version(t.Context(), "")
	if err != nil {
		t.Skip("NOT RUN: needs real servers: ", err)
	}
	var simulated recording
	simulate(t, sim.Config{Topology: shards(), Seed: 1, Password: "p"}, func(w *world) {
		simulated, err = recordSimulatedBus(w)
	})
	if err != nil {
		t.Fatal(err)
	}
	keepLive(t, realBus, func() (r recording, err error) {
		withReal(t, shards(), func(c *process.Cluster) { r, err = newObserver(t.Context(), c).run() })
		r.Redis = version
		return r, err
	}, func(r recording) {
		for i, e := range r.Events {
			wrong := e.breaks()
			if *liveRecordings > 1 {
				wrong = append(wrong, e.outOfBounds(bounds())...)
			}
			if e.roles() != simulated.Events[i].roles() {
				wrong = append(wrong, fmt.Sprintf("ended with %s, simulated with %s", e.roles(), simulated.Events[i].roles()))
			}
			for _, what := range wrong {
				t.Errorf("%s (load %s): %s", e.Event, r.Load, what)
			}
		}
	})
}

// roles is where an event ends, without epochs: an election that is repeated takes one more.
func (r recorded) roles() string {
	end := maps.Clone(r.End)
	maps.DeleteFunc(end, func(field, _ string) bool {
		return field == "epoch" || strings.HasSuffix(field, " config")
	})
	return fmt.Sprint(end)
}
