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
	doesNotBite(t, in) // these were lost before
	f.set(func() { f.traffic.Dropped = 9 })
	if proof := bites(t, in); proof != "4 bytes were lost" {
		t.Error(proof)
	}
}

// TestReplyLostToARealClient: what it asked for was done, and it learns no more
// than that its connection is over.
func TestReplyLostToARealClient(t *testing.T) {
	c := servers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, replyLostSpec, Env{Cluster: c}, "client:0")
	client.say(t, "INCR k")
	bites(t, in)
	client.hears(t, "silence")
	heals(t, in)
	client.hears(t, "over")
	if got := command(t, c, "n1", "GET", "k"); got != "1" {
		t.Errorf("k is %v", got)
	}
}
