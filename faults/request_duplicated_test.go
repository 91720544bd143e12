package faults

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestRequestDuplicatedByARealProxy: the copy arrives after the reply, and not at all after the fault is healed.
func TestRequestDuplicatedByARealProxy(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dial(t, c, 1)
	env := Env{Cluster: c, Amount: 20 * time.Millisecond, Rand: rand.New(rand.NewPCG(3, 1))}
	in := inject(t, requestDuplicatedSpec, env, "client:0")
	for i := range 10 {
		client.send(t, "LPUSH list "+strconv.Itoa(i))
		client.receive(20 * time.Second)
	}
	takesEffect(t, in)
	heals(t, in)
	env.Amount = time.Minute
	in = inject(t, requestDuplicatedSpec, env, "client:0")
	for range 10 {
		client.send(t, "INCR late")
		client.receive(20 * time.Second)
	}
	heals(t, in)
	gets(t, c, "n1", "late", "10")
}
