package faults

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestPacketLate: some packets are late, by a time that the seed draws.
func TestPacketLate(t *testing.T) {
	f := newFake(cluster.Single)
	env := f.env()
	env.Rand = rand.New(rand.NewPCG(5, 1))
	in := inject(t, packetLateSpec, env, "client:0")
	noEffectYet(t, in)
	for _, rule := range f.rules {
		if rule.Jitter != 500*time.Millisecond || rule.OneIn != oneIn || rule.Seed == 0 {
			t.Errorf("%+v", rule)
		}
	}
	f.set(func() { f.waiting["client:0"] = 1 })
	takesEffect(t, in)
	heals(t, in)
}

// TestPacketLateWithARealClient: most packets are on time, and none is lost.
func TestPacketLateWithARealClient(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dial(t, c, 1)
	env := Env{Cluster: c, Amount: 20 * time.Millisecond, Rand: rand.New(rand.NewPCG(3, 1))}
	in := inject(t, packetLateSpec, env, "client:0")
	for range 30 {
		client.send(t, "PING")
		client.expect(t, "+PONG")
	}
	heals(t, in)
}
