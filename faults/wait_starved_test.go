package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestWaitStarved(t *testing.T) {
	f := newFake(cluster.Sentinel)
	inject(t, waitStarvedSpec, f.env(), "n1")
	did(t, f, "rule n2>n1 1 1", "rule n3>n1 1 1")
}

// TestWaitStarvedOfRealServers: the replicas have the write, and WAIT does not know.
func TestWaitStarvedOfRealServers(t *testing.T) {
	c := servers(t, cluster.Replicated)
	client := dial(t, c, 1)
	// A master sends a replica nothing before its first ACK, which the fault would hold back.
	client.say(t, "SET before v")
	client.hears(t, "+OK")
	client.say(t, "WAIT 2 20000")
	if got := client.hear(30e9); got != ":2" {
		t.Fatalf("WAIT = %s before anything is broken", got)
	}
	in := inject(t, waitStarvedSpec, Env{Cluster: c}, "n1")
	client.say(t, "SET k v")
	client.hears(t, "+OK")
	client.say(t, "WAIT 1 200")
	client.hears(t, ":0")
	bites(t, in)
	gets(t, c, "n2", "k", "v")
	heals(t, in)
	client.say(t, "WAIT 1 10000")
	if got := client.hear(15e9); got != ":1" && got != ":2" {
		t.Errorf("WAIT = %s after healing", got)
	}
}
