package faults

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestLatency(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, latencySpec, f.env(), "all")
	did(t, f, "rule *>* 3 0")
	noEffectYet(t, in)
	f.set(func() { f.waiting["*"] = 1 })
	takesEffect(t, in)
}

// TestShortLatency: a delay that leaves room for ten round trips within the slack keeps no lock from its duties.
func TestShortLatency(t *testing.T) {
	for _, test := range []struct {
		topology string
		amount   time.Duration
		want     string
	}{
		{cluster.Single, 33 * time.Millisecond, history.AffectsDelays},
		{cluster.Single, 34 * time.Millisecond, history.AffectsTraffic},
		{cluster.Single, 0, history.AffectsTraffic},
		{cluster.Quorum, 10 * time.Millisecond, history.AffectsDelays},
		{cluster.Quorum, 11 * time.Millisecond, history.AffectsTraffic},
	} {
		if got := latencySpec.AffectsBy(test.amount, test.topology); got != test.want {
			t.Errorf("latency of %v on %s affects %q, want %q", test.amount, test.topology, got, test.want)
		}
	}
	if got := pauseNodeSpec.AffectsBy(time.Millisecond, cluster.Single); got != history.AffectsTraffic {
		t.Errorf("pause-node affects %q", got)
	}
}

// TestLatencyIsDrawnFromTheSeed: between half and one and a half of the amount, the same for the same seed.
func TestLatencyIsDrawnFromTheSeed(t *testing.T) {
	draw := func(seed uint64) time.Duration {
		return halfMoreOrLess(Env{Rand: rand.New(rand.NewPCG(seed, 1))}, time.Second)
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
	if d := halfMoreOrLess(Env{}, time.Second); d != time.Second {
		t.Errorf("without a random source the delay is %v", d)
	}
}

func TestLatencyWithARealClient(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, latencySpec, Env{Cluster: c, Amount: 100 * time.Millisecond}, "client:0")
	began := time.Now()
	client.send(t, "PING")
	takesEffect(t, in)
	client.expect(t, "+PONG")
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("the round trip took %v, want 200 ms", took)
	}
	heals(t, in)
}
