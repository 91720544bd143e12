package sim_test

import (
	"context"
	"net"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
)

// realEnsemble has recordings of real ensembles, one a line.
const realEnsemble = "testdata/real-ensemble.jsonl"

func members() cluster.Topology { return cluster.Topology{Kind: cluster.ZooKeeper} }

func simulatedEnsemble(t *testing.T) (all []recording) {
	t.Helper()
	for seed := range uint64(*simulatedSeeds) {
		simulate(t, sim.Config{Topology: members(), Seed: seed + 1, Actors: 2}, func(w *world) {
			o := &ensembleObserver{c: w.Cluster, ctx: w.ctx, dial: func(i int) dialer { return w.Client(i).Dial }}
			r, err := o.run()
			if err != nil {
				t.Errorf("seed %d: %v", seed+1, err)
			}
			all = append(all, r)
		})
	}
	return all
}

// TestTheSimulatedEnsembleBehavesAsRecorded compares what every member of simulated ensembles, and two clients, report
// with recordings of real ones, event by event.
func TestTheSimulatedEnsembleBehavesAsRecorded(t *testing.T) {
	live, simulated := readRecordings(t, realEnsemble), simulatedEnsemble(t)
	if t.Failed() {
		return
	}
	compareRecordings(t, live, simulated, ensembleBounds(), nil)
}

// TestARealEnsembleBehavesAsRecorded records a real ensemble now: every event has to end as recorded. How long it takes
// is judged only if several are recorded.
func TestARealEnsembleBehavesAsRecorded(t *testing.T) {
	version, err := process.ZooKeeperVersion()
	if err != nil {
		t.Skip("NOT RUN: needs real servers: ", err)
	}
	keepLive(t, realEnsemble, func() (recording, error) {
		r, err := recordLiveEnsemble(t)
		r.Zoo = version
		return r, err
	}, func(r recording) {
		for _, e := range r.Events {
			t.Logf("%s (load %s): %v", e.Event, r.Load, e.Changes)
			if *liveRecordings > 1 {
				for _, wrong := range e.outOfBounds(ensembleBounds()) {
					t.Errorf("%s (load %s): %s", e.Event, r.Load, wrong)
				}
			}
		}
	})
}

// recordLiveEnsemble records a real ensemble.
func recordLiveEnsemble(t *testing.T) (recording, error) {
	t.Helper()
	c, err := process.Start(t.Context(), process.Config{Topology: members(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	o := &ensembleObserver{c: c, ctx: t.Context(), dial: func(i int) dialer {
		return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.Endpoints(i).Source)}}).DialContext
	}}
	r, err := o.run()
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	return r, err
}
