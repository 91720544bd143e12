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

// TestWaitStarvedOfRealServers: the replicas have the write, and WAIT returns 0.
func TestWaitStarvedOfRealServers(t *testing.T) {
	c := startServers(t, cluster.Replicated)
	client := dial(t, c, 1)
	// A master sends a replica nothing before its first ACK, which the fault would hold.
	client.send(t, "SET before v")
	client.expect(t, "+OK")
	client.send(t, "WAIT 2 20000")
	if got := client.receive(30e9); got != ":2" {
		t.Fatalf("WAIT = %s before the fault", got)
	}
	in := inject(t, waitStarvedSpec, Env{Cluster: c}, "n1")
	client.send(t, "SET k v")
	client.expect(t, "+OK")
	client.send(t, "WAIT 1 200")
	client.expect(t, ":0")
	takesEffect(t, in)
	gets(t, c, "n2", "k", "v")
	heals(t, in)
	client.send(t, "WAIT 1 10000")
	if got := client.receive(15e9); got != ":1" && got != ":2" {
		t.Errorf("WAIT = %s after healing", got)
	}
}
