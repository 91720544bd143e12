package sim_test

import (
	"net"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/installed"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
)

// realEnsemble has recordings of real ensembles, one a line.
const realEnsemble = "testdata/real-ensemble.jsonl"

func members() cluster.Topology { return cluster.Topology{Kind: cluster.ZooKeeper} }

// TestTheSimulatedEnsembleBehavesAsRecorded compares the reports of every member of simulated ensembles, and of two
// clients, with recordings of real ones, event by event.
func TestTheSimulatedEnsembleBehavesAsRecorded(t *testing.T) {
	live := readRecordings(t, realEnsemble)
	simulated := recordSimulated(t, sim.Config{Topology: members(), Actors: 2}, func(w *world) (recording, error) {
		o := &ensembleObserver{c: w.Cluster, ctx: w.ctx, dial: func(i int) dialer { return w.Client(i).Dial }}
		return o.run()
	})
	if t.Failed() {
		return
	}
	compareRecordings(t, live, simulated, ensembleBounds(), nil)
}

// TestARealEnsembleBehavesAsRecorded records a real ensemble now: every event has to end as recorded. How long it takes
// is judged only if several are recorded.
func TestARealEnsembleBehavesAsRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: three real servers record for half a minute of CPU time")
	}
	found, err := installed.ZooKeeper()
	if err != nil {
		t.Skip("NOT RUN: needs real servers: ", err)
	}
	keepLive(t, realEnsemble, func() (r recording, err error) {
		withReal(t, members(), func(c *process.Cluster) {
			o := &ensembleObserver{c: c, ctx: t.Context(), dial: func(i int) dialer {
				return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.Endpoints(i).Source)}}).DialContext
			}}
			r, err = o.run()
		})
		r.Zoo = found.Version
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
