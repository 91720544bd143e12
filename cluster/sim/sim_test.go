package sim_test

import (
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/cluster"
	"github.com/lockchaos/lockchaos/cluster/sim"
)

func single() sim.Config {
	return sim.Config{Seed: 1, Topology: cluster.Topology{Kind: cluster.Single}, Actors: 5}
}
func sentinels() sim.Config {
	return sim.Config{Seed: 1, Topology: cluster.Topology{Kind: cluster.Sentinel}, Actors: 5}
}

func TestACommandTakesARoundTrip(t *testing.T) {
	simulate(t, single(), func(w *world) {
		c := w.client(0)
		w.ok(c.Ping(w.ctx).Err())
		began := w.Now()
		w.ok(c.Set(w.ctx, "k", "v", time.Second).Err())
		if took := w.Now() - began; took < 200*time.Microsecond || took > 2100*time.Microsecond {
			t.Errorf("a command took %v", took)
		}
		pass(500 * time.Millisecond)
		if v, err := c.Get(w.ctx, "k").Result(); v != "v" || err != nil {
			t.Errorf("got %q, %v", v, err)
		}
		pass(600 * time.Millisecond)
		if n := c.Exists(w.ctx, "k").Val(); n != 0 {
			t.Error("the key outlived its time")
		}
	})
}

func TestSentinelStarts(t *testing.T) {
	simulate(t, sentinels(), func(w *world) {
		c := w.client(0)
		w.ok(c.Set(w.ctx, "k", "v", 0).Err())
		pass(10 * time.Millisecond)
		for _, n := range w.Nodes() {
			t.Logf("%v %+v", w.Now(), w.Sample(w.ctx, n.Name, []string{"k"}))
		}
	})
}
