package sim_test

import (
	"context"
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

func simulatedBus(t *testing.T) (all []recording) {
	t.Helper()
	for seed := range uint64(*simulatedSeeds) {
		simulate(t, sim.Config{Topology: shards(), Seed: seed + 1, Password: "p"}, func(w *world) {
			r, err := newObserver(w.ctx, w.Cluster).run()
			if err != nil {
				t.Errorf("seed %d: %v", seed+1, err)
			}
			all = append(all, r)
		})
	}
	return all
}

// TestTheSimulatedBusBehavesAsRecorded compares what every node of simulated clusters reports with recordings of real
// ones, event by event: what is seen, in which order, how long it takes, and where it ends.
func TestTheSimulatedBusBehavesAsRecorded(t *testing.T) {
	live, simulated := readRecordings(t, realBus), simulatedBus(t)
	if t.Failed() {
		return
	}
	compareRecordings(t, live, simulated, bounds(), recorded.breaks)
}

// TestARealClusterEndsAsSimulated records a real cluster now. How a busy machine orders what is not caused by each
// other is not judged, nor is how long it takes.
func TestARealClusterEndsAsSimulated(t *testing.T) {
	version, err := process.Version(t.Context(), "")
	if err != nil {
		t.Skip("NOT RUN: needs real servers: ", err)
	}
	var simulated recording
	simulate(t, sim.Config{Topology: shards(), Seed: 1, Password: "p"}, func(w *world) {
		simulated, err = newObserver(w.ctx, w.Cluster).run()
	})
	if err != nil {
		t.Fatal(err)
	}
	keepLive(t, realBus, func() (recording, error) {
		r, err := recordLiveBus(t)
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

// recordLiveBus records a real cluster.
func recordLiveBus(t *testing.T) (recording, error) {
	t.Helper()
	c, err := process.Start(t.Context(), process.Config{Topology: shards(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	r, err := newObserver(t.Context(), c).run()
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return r, err
}

// roles is where an event ends, without epochs: an election that is repeated takes one more.
func (r recorded) roles() string {
	end := maps.Clone(r.End)
	maps.DeleteFunc(end, func(field, _ string) bool {
		return field == "epoch" || strings.HasSuffix(field, " config")
	})
	return fmt.Sprint(end)
}
