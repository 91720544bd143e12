package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestGrantReplyLost(t *testing.T) {
	f := newFake(cluster.Single)
	f.traffic.Dropped = 3 // before the fault
	in := inject(t, grantReplyLostSpec, waiterOn(f), "client:2")
	notTheGrant(t, f, in)
	f.set(func() { f.holds["n1"] = "a" })
	noEffectYet(t, in) // granted, and the reply is not lost yet
	f.set(func() { f.traffic.Dropped = 9 })
	if effect := takesEffect(t, in); effect != "n1 granted orders to client 2, and its reply was lost" {
		t.Error(effect)
	}
	heals(t, in)
}

// TestGrantReplyLostByARealServer: the grant is at the server, and its client sees a closed connection; replies before
// it arrive.
func TestGrantReplyLostByARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dialAs(t, c, 2, 1)
	in := inject(t, grantReplyLostSpec, waiterOn(c), "client:2")
	observed := make(chan string, 1)
	go func() {
		effect, _ := in.Observe(t.Context())
		observed <- effect
	}()
	client.send(t, "GET orders")
	client.expect(t, "$-1")
	client.send(t, "SET orders a NX")
	if effect := <-observed; effect != "n1 granted orders to client 2, and its reply was lost" {
		t.Error(effect)
	}
	heals(t, in)
	client.expect(t, "closed")
	if got := run(t, c, "n1", "GET", "orders"); got != "a" {
		t.Errorf("orders is %v", got)
	}
}
