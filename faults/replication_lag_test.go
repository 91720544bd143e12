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
	const lag = 3 * time.Second
	in := inject(t, replicationLagSpec, Env{Cluster: c, Amount: lag}, "n1")
	written := time.Now()
	run(t, c, "n1", "SET", "k", "v")
	got := run(t, c, "n2", "GET", "k")
	if after := time.Since(written); got != nil && after < lag {
		t.Errorf("the replica has %v after %v", got, after)
	}
	takesEffect(t, in)
	gets(t, c, "n2", "k", "v")
	heals(t, in)
}
