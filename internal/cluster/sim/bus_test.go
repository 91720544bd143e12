package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
)

func sharded(seed uint64) sim.Config {
	return sim.Config{Seed: seed, Topology: cluster.Topology{Kind: cluster.Sharded}, Actors: 3}
}

// keyAt is a key that node n1, n2 or n3 owns at the start.
func keyAt(node int) string { return []string{"b", "c", "a"}[node-1] }

func TestAClusterSharesKeys(t *testing.T) {
	simulate(t, sharded(1), func(w *world) {
		for i, n := range w.Nodes()[:3] {
			c := w.at(w.Client(0), n.Addr)
			w.ok(c.Set(w.ctx, keyAt(i+1), "v", 0).Err())
			other := keyAt((i+1)%3 + 1)
			if err := c.Set(w.ctx, other, "v", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
				t.Errorf("%s took %q: %v", n.Name, other, err)
			}
			if err := c.MGet(w.ctx, "a", "b").Err(); err == nil || !strings.HasPrefix(err.Error(), "CROSSSLOT ") {
				t.Errorf("two slots: %v", err)
			}
			w.ok(c.MGet(w.ctx, "{"+keyAt(i+1)+"}1", "{"+keyAt(i+1)+"}2").Err())
		}
		c := w.at(w.Client(0), w.Nodes()[0].Addr)
		if info := c.ClusterInfo(w.ctx).Val(); !strings.Contains(info, "cluster_state:ok") {
			t.Error(info)
		}
		for _, s := range c.ClusterSlots(w.ctx).Val() {
			if len(s.Nodes) != 2 {
				t.Errorf("slots %d to %d have %v", s.Start, s.End, s.Nodes)
			}
		}
		if n := strings.Count(c.ClusterNodes(w.ctx).Val(), "\n"); n != 6 {
			t.Errorf("CLUSTER NODES names %d", n)
		}
	})
}

// TestAReplicaTakesOver: on real servers 1.4 to 2.0 s after the kill.
func TestAReplicaTakesOver(t *testing.T) {
	for seed := range uint64(10) {
		simulate(t, sharded(seed), func(w *world) {
			c := w.at(w.Client(0), w.Nodes()[0].Addr)
			w.ok(c.Set(w.ctx, keyAt(1), "v", 0).Err())
			pass(time.Second)
			w.ok(w.Kill(w.ctx, "n1"))
			took, _ := w.becomes("n4", "master", 10*time.Second)
			if took < 1000*time.Millisecond || took > 2400*time.Millisecond {
				t.Errorf("seed %d: it took %v", seed, took)
			}
			pass(100 * time.Millisecond)
			d := w.at(w.Client(0), w.Nodes()[3].Addr)
			if v, err := d.Get(w.ctx, keyAt(1)).Result(); v != "v" || err != nil {
				t.Errorf("seed %d: the new master has %q, %v", seed, v, err)
			}
			if err := w.at(w.Client(0), w.Nodes()[1].Addr).Get(w.ctx, keyAt(1)).Err(); err == nil ||
				!strings.HasSuffix(err.Error(), w.Nodes()[3].Addr) {
				t.Errorf("another master says %v", err)
			}
			w.ok(w.Restart(w.ctx, "n1"))
			w.becomes("n1", "slave", 20*time.Second)
			pass(3 * time.Second)
			if s := w.Sample(w.ctx, "n1", []string{keyAt(1)}); s.Keys[keyAt(1)].Owner != "v" {
				t.Errorf("seed %d: the former master has %v", seed, s.Keys)
			}
		})
	}
}

func TestManualTakeOvers(t *testing.T) {
	for _, c := range []struct {
		how  []any
		kill bool
	}{{nil, false}, {[]any{"FORCE"}, true}, {[]any{"TAKEOVER"}, false}, {[]any{"FORCE"}, false}} {
		t.Run(fmt.Sprint(c.how, c.kill), func(t *testing.T) {
			simulate(t, sharded(3), func(w *world) {
				r := w.at(w.Client(0), w.Nodes()[0].Addr)
				w.ok(r.Set(w.ctx, keyAt(1), "v", 0).Err())
				pass(10 * time.Millisecond)
				if c.kill {
					w.ok(w.Kill(w.ctx, "n1"))
				}
				if v, err := w.Do(w.ctx, "n4", append([]any{"CLUSTER", "FAILOVER"}, c.how...)...); v != "OK" || err != nil {
					t.Errorf("%v, %v", v, err)
				}
				took, _ := w.becomes("n4", "master", 5*time.Second)
				if took > 200*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				if !c.kill {
					w.becomes("n1", "slave", 5*time.Second)
				}
				pass(time.Second)
				d := w.at(w.Client(0), w.Nodes()[3].Addr)
				w.ok(d.Set(w.ctx, keyAt(1), "w", 0).Err())
			})
		})
	}
}

// TestAMinorityStopsServing, and serves again when the others are back.
func TestAMinorityStopsServing(t *testing.T) {
	simulate(t, sharded(4), func(w *world) {
		for _, other := range []string{"n2", "n3", "n5", "n6", "n4"} {
			w.rule(cluster.Link{From: "n1", To: other}, cluster.Both, cluster.Drop)
			w.rule(cluster.Link{From: other, To: "n1"}, cluster.Both, cluster.Drop)
		}
		c := w.at(w.Client(0), w.Nodes()[0].Addr)
		w.ok(c.Set(w.ctx, keyAt(1), "v", 0).Err())
		w.becomes("n4", "master", 10*time.Second)
		if err := c.Set(w.ctx, keyAt(1), "w", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "CLUSTERDOWN ") {
			t.Errorf("alone: %v", err)
		}
		w.rule(cluster.Link{From: cluster.Any, To: cluster.Any}, cluster.Both, cluster.Pass)
		w.becomes("n1", "slave", 20*time.Second)
		pass(2 * time.Second)
		if err := c.Set(w.ctx, keyAt(1), "w", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
			t.Errorf("after healing: %v", err)
		}
	})
}
