package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
)

var (
	liveRecordings = flag.Int("bus.recordings", 1, "real clusters to record; above 1: their times are judged too")
	simulatedSeeds = flag.Int("bus.seeds", 4, "how many simulated clusters are compared with the recordings")
	keepRecordings = flag.Bool("bus.keep", false, "write these recordings into testdata/real-bus.jsonl")
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

func readRealBus(t *testing.T) (all []recording) {
	t.Helper()
	data, err := os.ReadFile(realBus)
	if err != nil {
		t.Fatal(err)
	}
	for lines := json.NewDecoder(bytes.NewReader(data)); lines.More(); {
		var r recording
		if err := lines.Decode(&r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// TestTheSimulatedBusBehavesAsRecorded compares what every node of simulated clusters reports with recordings of real
// ones, event by event: what is seen, in which order, how long it takes, and where it ends.
func TestTheSimulatedBusBehavesAsRecorded(t *testing.T) {
	live, simulated := readRealBus(t), simulatedBus(t)
	if t.Failed() {
		return
	}
	if len(live) < 20 {
		t.Errorf("%d recordings of real clusters, want 20", len(live))
	}
	for i, e := range live[0].Events {
		a, b := eventsAt(live, i), eventsAt(simulated, i)
		for _, difference := range compareEvents(a, b) {
			t.Errorf("%s: %s", e.Event, difference)
		}
		for _, r := range slices.Concat(a, b) {
			for _, wrong := range slices.Concat(r.breaks(), r.outOfBounds()) {
				t.Errorf("%s: %s", e.Event, wrong)
			}
		}
	}
}

func eventsAt(all []recording, i int) (list []recorded) {
	for _, r := range all {
		list = append(list, r.Events[i])
	}
	return list
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
	var kept bytes.Buffer
	for range *liveRecordings {
		r := recordLive(t)
		r.Redis = version
		for i, e := range r.Events {
			wrong := e.breaks()
			if *liveRecordings > 1 {
				wrong = append(wrong, e.outOfBounds()...)
			}
			if e.roles() != simulated.Events[i].roles() {
				wrong = append(wrong, fmt.Sprintf("ended with %s, simulated with %s", e.roles(), simulated.Events[i].roles()))
			}
			for _, what := range wrong {
				t.Errorf("%s (load %s): %s", e.Event, r.Load, what)
			}
		}
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		kept.Write(append(line, '\n'))
	}
	if *keepRecordings {
		if err := os.WriteFile(realBus, kept.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// recordLive records a real cluster, again if the machine was too busy.
func recordLive(t *testing.T) recording {
	t.Helper()
	for attempt := 1; ; attempt++ {
		c, err := process.Start(t.Context(), process.Config{Topology: shards(), Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		r, err := newObserver(t.Context(), c).run()
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
		load, _ := os.ReadFile("/proc/loadavg")
		r.Load, _, _ = strings.Cut(string(load), " ")
		switch {
		case err == nil:
			return r
		case !errors.Is(err, errDisturbed):
			t.Fatal(err)
		case attempt == 3:
			t.Skip("NOT RUN: ", err, ", load ", r.Load)
		}
		t.Log("again: ", err)
	}
}

// roles is where an event ends, without epochs: an election that is repeated takes one more.
func (r recorded) roles() string {
	end := maps.Clone(r.End)
	maps.DeleteFunc(end, func(field, _ string) bool {
		return field == "epoch" || strings.HasSuffix(field, " config")
	})
	return fmt.Sprint(end)
}
