package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestReplyLate(t *testing.T) {
	f := newFake(cluster.Quorum)
	inject(t, replyLateSpec, f.env(), "client:1>n2")
	did(t, f, "rule client:1>n2 2 1")
}

func TestReplyLateToARealClient(t *testing.T) {
	c := startServers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, replyLateSpec, Env{Cluster: c}, "client:0")
	client.send(t, "INCR k")
	takesEffect(t, in)
	client.expect(t, "silence")
	heals(t, in)
	client.expect(t, ":1")
}
