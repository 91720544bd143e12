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
	c := servers(t, cluster.Single)
	client := dial(t, c, 1)
	in := inject(t, replyLateSpec, Env{Cluster: c}, "client:0")
	client.say(t, "INCR k")
	bites(t, in)
	client.hears(t, "silence")
	heals(t, in)
	client.hears(t, ":1")
}
