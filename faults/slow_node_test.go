package faults

import (
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestSlowNode(t *testing.T) {
	f := newFake(cluster.Quorum)
	inject(t, slowNodeSpec, f.env(), "n2+n3")
	did(t, f, "rule *>n2 2 0", "rule *>n3 2 0")
}

func TestSlowNodeOfRealServers(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, slowNodeSpec, Env{Cluster: c, Amount: 150 * time.Millisecond}, "n1")
	began := time.Now()
	client.send(t, "PING")
	takesEffect(t, in)
	client.expect(t, "+PONG")
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("the reply took %v, want 150 ms", took)
	}
	heals(t, in)
}
