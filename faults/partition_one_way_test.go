package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestPartitionOneWay(t *testing.T) {
	for target, want := range map[string][]string{
		"client:3":    {"rule client:3>* 1 1"},
		"client:3>n2": {"rule client:3>n2 1 1"},
		"n2>n3":       {"rule n2>n3 1 1", "rule n3>n2 2 1"},
		"n2":          {"rule *>n2 2 1", "rule n2>* 1 1"},
	} {
		f := newFake(cluster.Quorum)
		inject(t, partitionOneWaySpec, f.env(), target)
		did(t, f, want...)
	}
}

// TestPartitionOneWayOfARealServer: it executes a request, and its reply does not arrive.
func TestPartitionOneWayOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, partitionOneWaySpec, Env{Cluster: c}, "n1")
	client.send(t, "SET k v")
	takesEffect(t, in)
	client.expect(t, "silence")
	if got := run(t, c, "n1", "GET", "k"); got != "v" {
		t.Errorf("the request has not arrived: %v", got)
	}
	heals(t, in)
	client.expect(t, "+OK")
}
