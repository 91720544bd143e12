package sim_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/sim"
)

// contend has every client take and give back one lock until the end.
func contend(w *world, until time.Duration) {
	var all sync.WaitGroup
	for i := range 5 {
		c, a := w.client(i), w.Client(i)
		all.Go(func() {
			a.Turn()
			for n := 0; w.Now() < until; n++ {
				owner := fmt.Sprintf("%d-%d", i, n)
				if ok, _ := c.SetNX(context.Background(), "lock", owner, time.Second).Result(); ok {
					pass(20 * time.Millisecond)
					if v, _ := c.Get(context.Background(), "lock").Result(); v == owner {
						c.Del(context.Background(), "lock")
					}
				}
				pass(10 * time.Millisecond)
			}
		})
	}
	all.Wait()
	w.self.Turn()
}

// shake is a run with a crash, a pause, a partition and a frozen client.
func shake(t *testing.T, cfg sim.Config) (hash uint64, commands int64) {
	simulate(t, cfg, func(w *world) {
		var nemesis sync.WaitGroup
		nemesis.Go(func() {
			w.self.Turn()
			pass(500 * time.Millisecond)
			w.Client(3).Freeze()
			w.ok(w.Pause(w.ctx, "n1"))
			pass(300 * time.Millisecond)
			w.ok(w.Resume(w.ctx, "n1"))
			pass(300 * time.Millisecond)
			w.Client(3).Thaw()
			w.ok(w.Kill(w.ctx, "n1"))
			pass(2 * time.Second)
			w.ok(w.Restart(w.ctx, "n1"))
			for _, n := range w.Nodes() {
				w.Sample(w.ctx, n.Name, []string{"lock"})
			}
		})
		contend(w, 5*time.Second)
		nemesis.Wait()
		hash, commands = w.Hash(), w.Commands()
	})
	return hash, commands
}

// TestTheSameSeedIsTheSameRun, byte by byte and instant by instant, whatever
// order Go runs goroutines in.
func TestTheSameSeedIsTheSameRun(t *testing.T) {
	// Where every way takes equally long, all would be awake at the same instants if they had no slots.
	tied := single()
	tied.MinLatency, tied.MaxLatency = 500*time.Microsecond, 500*time.Microsecond
	for name, cfg := range map[string]sim.Config{"single": single(), "sentinel": sentinels(), "equal latencies": tied} {
		t.Run(name, func(t *testing.T) {
			want, commands := shake(t, cfg)
			if commands < 500 {
				t.Errorf("only %d commands", commands)
			}
			for i := range 10 {
				before := runtime.GOMAXPROCS(1 + i%2)
				got, n := shake(t, cfg)
				runtime.GOMAXPROCS(before)
				if got != want || n != commands {
					t.Errorf("run %d has hash %x after %d commands, the first %x after %d", i, got, n, want, commands)
				}
			}
			cfg.Seed++
			if other, _ := shake(t, cfg); other == want { // the hash begins with the seed
				t.Errorf("another seed has the same hash %x", other)
			}
			if t.Failed() {
				firstDifference(t, cfg)
			}
		})
	}
}

// firstDifference finds where two runs part.
func firstDifference(t *testing.T, cfg sim.Config) {
	var traces [2]bytes.Buffer
	for try := 0; try < 20; try++ {
		for i := range traces {
			traces[i].Reset()
			cfg.Trace = &traces[i]
			shake(t, cfg)
		}
		a, b := bytes.Split(traces[0].Bytes(), []byte("\n")), bytes.Split(traces[1].Bytes(), []byte("\n"))
		for i := range min(len(a), len(b)) {
			if !bytes.Equal(a[i], b[i]) {
				t.Logf("line %d:\n%s\n%s\nbefore:\n%s", i, a[i], b[i], bytes.Join(a[max(0, i-10):i], []byte("\n")))
				return
			}
		}
	}
}

// TestTheHashSeesEverything: one byte of one reply makes another hash.
func TestTheHashSeesEverything(t *testing.T) {
	hash := func(value string) (h uint64) {
		simulate(t, single(), func(w *world) {
			c := w.client(0)
			w.ok(c.Set(w.ctx, "k", value, 0).Err())
			h = w.Hash()
		})
		return h
	}
	if hash("a") == hash("b") {
		t.Error("two values, one hash")
	}
}
