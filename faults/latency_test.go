package faults

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestLatency(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, latencySpec, f.env(), "all")
	did(t, f, "rule *>* 3 0")
	doesNotBite(t, in)
	f.set(func() { f.waiting["*"] = 1 })
	bites(t, in)
}

// TestLatencyIsDrawnFromTheSeed: between a half less and a half more, the same for the same seed.
func TestLatencyIsDrawnFromTheSeed(t *testing.T) {
	draw := func(seed uint64) time.Duration {
		return jitter(Env{Rand: rand.New(rand.NewPCG(seed, 1))}, time.Second)
	}
	seen := map[time.Duration]bool{}
	for seed := range uint64(50) {
		d := draw(seed)
		if d < time.Second/2 || d >= 3*time.Second/2 || d != draw(seed) {
			t.Errorf("seed %d draws %v, then %v", seed, d, draw(seed))
		}
		seen[d] = true
	}
	if len(seen) < 40 {
		t.Errorf("50 seeds draw %d delays", len(seen))
	}
	if d := jitter(Env{}, time.Second); d != time.Second {
		t.Errorf("without chance the delay is %v", d)
	}
}

func TestLatencyOfARealClient(t *testing.T) {
	c := servers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, latencySpec, Env{Cluster: c, Amount: 100 * time.Millisecond}, "client:0")
	began := time.Now()
	client.say(t, "PING")
	bites(t, in)
	client.hears(t, "+PONG")
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("there and back took %v, want 200 ms", took)
	}
	heals(t, in)
}
