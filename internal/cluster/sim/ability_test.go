package sim_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim"
)

// TestWhatADiskKeeps is the table of fsync policies: the rest of two writes, one long before the end and one just
// before it.
func TestWhatADiskKeeps(t *testing.T) {
	for _, c := range []struct {
		appendonly, fsync string
		power             bool
		early, late       bool
	}{
		{"no", "everysec", false, false, false},
		{"no", "always", true, false, false},
		{"yes", "no", false, true, true}, // a killed process has given everything to the system
		{"yes", "everysec", false, true, true},
		{"yes", "always", false, true, true},
		{"yes", "no", true, false, false}, // the system writes after thirty seconds
		{"yes", "everysec", true, true, false},
		{"yes", "always", true, true, true},
	} {
		name := fmt.Sprintf("appendonly %s, appendfsync %s, power cut %v", c.appendonly, c.fsync, c.power)
		t.Run(name, func(t *testing.T) {
			cfg := single()
			cfg.Topology.Options = map[string]string{"appendonly": c.appendonly, "appendfsync": c.fsync}
			simulate(t, cfg, func(w *world) {
				r := w.client(0)
				w.ok(r.Set(w.ctx, "early", "v", 0).Err())
				pass(2 * time.Second)
				w.ok(r.Set(w.ctx, "between", "v", 0).Err()) // fsynced at once after a quiet second
				pass(10 * time.Millisecond)
				w.ok(r.Set(w.ctx, "late", "v", time.Minute).Err())
				end := w.Kill
				if c.power {
					end = w.PowerOff
				}
				w.ok(end(w.ctx, "n1"))
				w.ok(w.Restart(w.ctx, "n1"))
				pass(loaded)
				keys, err := w.Keys(w.ctx, "n1")
				w.ok(err)
				_, early := keys["early"]
				left, late := keys["late"]
				if early != c.early || late != c.late {
					t.Errorf("early %v, late %v, want %v, %v", early, late, c.early, c.late)
				}
				if late && (left < 59*time.Second || left > time.Minute) {
					t.Errorf("%v is left of a minute", left)
				}
				w.ok(w.Kill(w.ctx, "n1"))
				w.ok(w.Wipe(w.ctx, "n1"))
				w.ok(w.Restart(w.ctx, "n1"))
				if keys, _ = w.Keys(w.ctx, "n1"); len(keys) != 0 {
					t.Errorf("a wiped disk has %v", keys)
				}
			})
		})
	}
}

func TestClocksOfNodes(t *testing.T) {
	simulate(t, single(), func(w *world) {
		c := w.client(0)
		w.ok(c.Set(w.ctx, "k", "v", 10*time.Second).Err())
		w.ok(w.SetClock(w.ctx, "n1", cluster.Clock{Offset: 9 * time.Second}))
		if left := c.PTTL(w.ctx, "k").Val(); left < 900*time.Millisecond || left > time.Second {
			t.Errorf("%v is left after a jump of nine seconds", left)
		}
		w.ok(w.SetClock(w.ctx, "n1", cluster.Clock{Offset: 11 * time.Second}))
		if n := c.Exists(w.ctx, "k").Val(); n != 0 {
			t.Error("a jump past the end of a key left it there")
		}
		w.ok(w.SetClock(w.ctx, "n1", cluster.Clock{Drift: 1})) // twice as fast
		w.ok(c.Set(w.ctx, "k", "v", 10*time.Second).Err())
		pass(4 * time.Second)
		if left := c.PTTL(w.ctx, "k").Val(); left < 1900*time.Millisecond || left > 2*time.Second {
			t.Errorf("%v is left after four seconds of a clock of double speed", left)
		}
		pass(1100 * time.Millisecond)
		if n := c.Exists(w.ctx, "k").Val(); n != 0 {
			t.Error("a fast clock did not end the key in time")
		}
	})
}

// TestASkewedReplicaThatIsPromoted has let the lock run out: keys are replicated with absolute times.
func TestASkewedReplicaThatIsPromoted(t *testing.T) {
	simulate(t, sentinels(), func(w *world) {
		w.ok(w.SetClock(w.ctx, "n2", cluster.Clock{Offset: 20 * time.Second}))
		c := w.client(0)
		w.ok(c.SetNX(w.ctx, "lock", "a", 10*time.Second).Err())
		w.ok(w.Kill(w.ctx, "n1"))
		w.writes(c, 5*time.Second)
		if ok := c.SetNX(w.ctx, "lock", "b", 10*time.Second).Val(); !ok {
			t.Error("the lock survived a clock twenty seconds ahead")
		}
	})
}

// TestExecAfterADemotion: EXEC is refused as its commands would be now, not when they were queued (processCommand in
// Redis' server.c).
func TestExecAfterADemotion(t *testing.T) {
	simulate(t, single(), func(w *world) {
		c := w.at(w.Client(0), w.Nodes()[0].Addr).(*redis.Client).Conn()
		defer c.Close()
		w.ok(c.Do(w.ctx, "MULTI").Err())
		w.ok(c.Do(w.ctx, "SET", "k", "v").Err())
		_, err := w.Do(w.ctx, "n1", "REPLICAOF", "127.0.0.1", "1")
		w.ok(err)
		if err := c.Do(w.ctx, "EXEC").Err(); err == nil || !strings.HasPrefix(err.Error(), "EXECABORT ") ||
			!strings.Contains(err.Error(), "READONLY") {
			t.Errorf("EXEC at a replica: %v", err)
		}
		if err := c.Get(w.ctx, "k").Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("the write was executed: %v", err)
		}
	})
}

func TestWaitCountsReplicas(t *testing.T) {
	simulate(t, sentinels(), func(w *world) {
		c := w.client(0)
		conn := c.Set(w.ctx, "k", "v", 0)
		w.ok(conn.Err())
		if n, err := c.Do(w.ctx, "WAIT", 2, 1000).Int(); n != 2 || err != nil {
			t.Errorf("WAIT answered %d, %v", n, err)
		}
		w.rule(cluster.Link{From: "n2", To: "n1"}, cluster.Back, cluster.Hold)
		w.ok(c.Set(w.ctx, "k", "w", 0).Err())
		if n, err := c.Do(w.ctx, "WAIT", 2, 100).Int(); n != 1 || err != nil {
			t.Errorf("one of two is held back, and WAIT answered %d, %v", n, err)
		}
		w.rule(cluster.Link{From: "n3", To: "n1"}, cluster.Back, cluster.Hold)
		w.ok(c.Set(w.ctx, "k", "x", 0).Err())
		began := w.Now()
		n, err := c.Do(w.ctx, "WAIT", 1, 500).Int()
		if took := w.Now() - began; n != 0 || err != nil || took < 500*time.Millisecond || took > 505*time.Millisecond {
			t.Errorf("WAIT answered %d, %v after %v", n, err, took)
		}
	})
}

func TestMinReplicasToWrite(t *testing.T) {
	cfg := sentinels()
	cfg.Topology.Options = map[string]string{"min-replicas-to-write": "1", "min-replicas-max-lag": "2"}
	simulate(t, cfg, func(w *world) {
		c := w.client(0)
		w.ok(c.Set(w.ctx, "k", "v", 0).Err())
		for _, from := range []string{"n2", "n3"} {
			w.rule(cluster.Link{From: from, To: "n1"}, cluster.Both, cluster.Hold)
		}
		pass(4 * time.Second)
		err := c.Set(w.ctx, "k", "w", 0).Err()
		if err == nil || err.Error() != "NOREPLICAS Not enough good replicas to write." {
			t.Errorf("writing without replicas: %v", err)
		}
	})
}

func TestAdminAndInventory(t *testing.T) {
	simulate(t, sentinels(), func(w *world) {
		if v, err := w.Do(w.ctx, "n1", "SET", "k", "v", "PX", 1000); v != "OK" || err != nil {
			t.Errorf("%v, %v", v, err)
		}
		if v, err := w.Do(w.ctx, "n1", "GET", "none"); v != nil || err != nil {
			t.Errorf("%v, %v", v, err)
		}
		if _, err := w.Do(w.ctx, "n2", "SET", "k", "v"); err == nil {
			t.Error("a replica took a write")
		}
		if v, err := w.Do(w.ctx, "n1", "WAIT", 2, 500); v != int64(0) && v != int64(2) || err != nil {
			t.Errorf("%v, %v", v, err)
		}
		w.ok(w.Pause(w.ctx, "n1"))
		if _, err := w.Do(w.ctx, "n1", "PING"); err == nil {
			t.Error("a paused server replied")
		}
		if s := w.Sample(w.ctx, "n1", nil); s.Up {
			t.Error("a paused server is reported up")
		}
		w.ok(w.Resume(w.ctx, "n1"))
		w.ok(w.Kill(w.ctx, "n1"))
		for what, err := range map[string]error{
			"pausing":  w.Pause(w.ctx, "n1"),
			"resuming": w.Resume(w.ctx, "n1"),
			"asking":   second(w.Do(w.ctx, "n1", "PING")),
			"listing":  second(w.Keys(w.ctx, "n1")),
		} {
			if !errors.Is(err, cluster.ErrDown) {
				t.Errorf("%s: %v", what, err)
			}
		}
		w.ok(w.Restart(w.ctx, "n1"))
		if err := w.Restart(w.ctx, "n1"); err == nil {
			t.Error("it was started twice")
		}
		if err := w.Kill(w.ctx, "n9"); !errors.Is(err, cluster.ErrNoNode) {
			t.Errorf("killing an unknown node: %v", err)
		}
	})
}

// loaded is longer than a server takes to read its data.
const loaded = 301 * time.Millisecond

func second[T any](_ T, err error) error { return err }

func TestBadConfigurations(t *testing.T) {
	for name, cfg := range map[string]sim.Config{
		"no topology":      {},
		"too many clients": {Topology: cluster.Topology{Kind: cluster.Single}, Actors: 1_000_000},
		"negative latency": {Topology: cluster.Topology{Kind: cluster.Single}, MinLatency: -1, MaxLatency: 1},
		"snapshots":        {Topology: cluster.Topology{Kind: cluster.Single, Options: map[string]string{"save": "1 1"}}},
		"an odd fsync": {Topology: cluster.Topology{Kind: cluster.Single,
			Options: map[string]string{"appendfsync": "x"}}},
		"an included file": {Topology: cluster.Topology{Kind: cluster.Single,
			Options: map[string]string{"Include": "/etc/redis.conf"}}},
		"quorum of two":     {Topology: cluster.Topology{Kind: cluster.Quorum, Masters: 2}},
		"latency backwards": {Topology: cluster.Topology{Kind: cluster.Single}, MinLatency: 2, MaxLatency: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := sim.Start(t.Context(), cfg)
			if err == nil {
				w := c.Close(t.Context())
				t.Errorf("it started, %v", w)
			}
		})
	}
}
