package faults

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestJitter: the seed of the packets is drawn from the run's, for each link separately.
func TestJitter(t *testing.T) {
	rules := func(seed uint64) []cluster.Rule {
		f := newFake(cluster.Quorum)
		env := f.env()
		env.Rand, env.Amount = rand.New(rand.NewPCG(seed, 1)), 30*time.Millisecond
		in := inject(t, jitterSpec, env, "n2")
		did(t, f, "rule *>n2 3 0", "rule n2>* 3 0")
		noEffectYet(t, in)
		f.set(func() { f.waiting["*"] = 1 })
		takesEffect(t, in)
		return f.rules
	}
	a, again, other := rules(1), rules(1), rules(2)
	for i, rule := range a {
		if rule.Jitter != 30*time.Millisecond || rule.Delay != 0 || rule != again[i] {
			t.Errorf("%+v, then %+v", rule, again[i])
		}
	}
	if a[0].Seed == a[1].Seed || a[0].Seed == other[0].Seed {
		t.Errorf("links or seeds draw the same: %+v, %+v", a, other)
	}
}

// TestJitterWithARealClient: packets are late, and in order.
func TestJitterWithARealClient(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dial(t, c, 1)
	env := Env{Cluster: c, Amount: 60 * time.Millisecond, Rand: rand.New(rand.NewPCG(3, 1))}
	in := inject(t, jitterSpec, env, "client:0")
	began := time.Now()
	for range 10 {
		client.send(t, "PING")
		client.expect(t, "+PONG")
	}
	if took := time.Since(began); took < 100*time.Millisecond { // 600 ms on average
		t.Errorf("ten round trips took %v", took)
	}
	client.send(t, "PING")
	takesEffect(t, in)
	client.expect(t, "+PONG")
	heals(t, in)
}
