package faults

import (
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestReplicationLag(t *testing.T) {
	f := newFake(cluster.Sentinel)
	inject(t, replicationLagSpec, f.env(), "n1")
	did(t, f, "rule n2>n1 2 0", "rule n3>n1 2 0")
	inject(t, replicationLagSpec, f.env(), "n3>n1")
	did(t, f, "rule n3>n1 2 0")
}

func TestReplicationLagOfRealServers(t *testing.T) {
	t.Parallel()
	c := startServers(t, cluster.Replicated)
	in := inject(t, replicationLagSpec, Env{Cluster: c, Amount: 1500 * time.Millisecond}, "n1")
	run(t, c, "n1", "SET", "k", "v")
	if got := run(t, c, "n2", "GET", "k"); got != nil {
		t.Errorf("the replica has the write at once: %v", got)
	}
	takesEffect(t, in)
	gets(t, c, "n2", "k", "v")
	heals(t, in)
}
