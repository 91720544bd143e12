package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestReplyLost(t *testing.T) {
	f := newFake(cluster.Single)
	f.traffic.Dropped = 5
	in := inject(t, replyLostSpec, f.env(), "client:3")
	did(t, f, "rule client:3>* 2 2")
	noEffectYet(t, in) // lost before the fault
	f.set(func() { f.traffic.Dropped = 9 })
	if effect := takesEffect(t, in); effect != "4 bytes lost" {
		t.Error(effect)
	}
}

// TestReplyLostToARealClient: the request was executed, and the client sees a closed connection.
func TestReplyLostToARealClient(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, replyLostSpec, Env{Cluster: c}, "client:0")
	client.send(t, "INCR k")
	takesEffect(t, in)
	client.expect(t, "silence")
	heals(t, in)
	client.expect(t, "closed")
	if got := run(t, c, "n1", "GET", "k"); got != "1" {
		t.Errorf("k is %v", got)
	}
}
