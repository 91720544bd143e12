package faults

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestPacketLost: connections are reset in place of some packets.
func TestPacketLost(t *testing.T) {
	f := newFake(cluster.Single)
	env := f.env()
	env.Rand = rand.New(rand.NewPCG(5, 1))
	in := inject(t, packetLostSpec, env, "client:0")
	noEffectYet(t, in)
	for _, rule := range f.rules {
		if !rule.Reset || rule.OneIn != oneIn || rule.Seed == 0 {
			t.Errorf("%+v", rule)
		}
	}
	f.set(func() { f.traffic.Resets = 1 })
	takesEffect(t, in)
	heals(t, in)
}

// TestPacketLostWithARealClient: the connection is reset after a few requests, and a new one works when it is healed.
func TestPacketLostWithARealClient(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, packetLostSpec, Env{Cluster: c, Rand: rand.New(rand.NewPCG(3, 1))}, "client:0")
	for range 500 { // the chance that none is lost is 0.8^1000
		if _, err := client.Write([]byte("PING\r\n")); err != nil || client.receive(20*time.Second) != "+PONG" {
			break
		}
	}
	takesEffect(t, in)
	heals(t, in)
	again := dial(t, c, 1)
	again.send(t, "PING")
	again.expect(t, "+PONG")
}
