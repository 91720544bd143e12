package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestGrantReplyLate(t *testing.T) {
	f := newFake(cluster.Single)
	in := inject(t, grantReplyLateSpec, waiterOn(f), "client:2")
	notTheGrant(t, f, in)
	f.set(func() { f.holds["n1"] = "a" })
	if effect := takesEffect(t, in); effect != "n1 granted orders to client 2, and its reply was held" {
		t.Error(effect)
	}
	heals(t, in)
}

// TestGrantReplyLateByARealServer: the reply to the grant arrives when the fault is healed.
func TestGrantReplyLateByARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dialAs(t, c, 2, 1)
	in := inject(t, grantReplyLateSpec, waiterOn(c), "client:2")
	client.send(t, "SET orders a NX")
	takesEffect(t, in)
	client.expect(t, "silence")
	heals(t, in)
	client.expect(t, "+OK")
}
