package sim_test

import (
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
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

func TestPromotionByHandMovesTheAddress(t *testing.T) {
	cfg := sim.Config{Topology: cluster.Topology{Kind: cluster.Replicated}, Actors: 2}
	simulate(t, cfg, func(w *world) {
		c := w.client(0)
		w.ok(c.Set(w.ctx, "k", "v", 0).Err())
		pass(10 * time.Millisecond)
		w.ok(w.Kill(w.ctx, "n1"))
		w.ok(w.Promote(w.ctx))
		w.writes(c, 5*time.Second)
		if v := c.Get(w.ctx, "k").Val(); v != "v" {
			t.Errorf("the new master has %q", v)
		}
		pass(3 * time.Second) // the other replica follows the address
		roles := ""
		for _, n := range w.Nodes() {
			s := w.Sample(w.ctx, n.Name, []string{"w"})
			roles += s.Role + " "
			if s.Up && s.Keys["w"].Owner != "v" {
				t.Errorf("%s has %v", n.Name, s.Keys)
			}
		}
		if roles != " master slave " && roles != " slave master " {
			t.Errorf("roles %q", roles)
		}
	})
}

func TestQuorumIsIndependentMasters(t *testing.T) {
	cfg := sim.Config{Topology: cluster.Topology{Kind: cluster.Quorum, Masters: 3, Replicas: 1}}
	simulate(t, cfg, func(w *world) {
		e := w.Endpoints(0)
		if len(e.Addrs) != 3 || len(w.Nodes()) != 6 {
			t.Fatalf("endpoints %v of nodes %v", e, w.Nodes())
		}
		for i, addr := range e.Addrs {
			w.ok(w.at(w.Client(0), addr).Set(w.ctx, "k", i, 0).Err())
		}
		pass(10 * time.Millisecond)
		for i, n := range w.Nodes() {
			s := w.Sample(w.ctx, n.Name, []string{"k"})
			if want := string(rune('0' + i%3)); s.Keys["k"].Owner != want {
				t.Errorf("%s has %v, want %s", n.Name, s.Keys, want)
			}
		}
	})
}
