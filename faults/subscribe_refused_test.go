package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestSubscribeRefusedOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	in := inject(t, subscribeRefusedSpec, Env{Cluster: c}, "n1")
	noEffectYet(t, in)
	client := dial(t, c, 1)
	for _, command := range []string{"subscribe", "psubscribe", "ssubscribe"} {
		client.send(t, command+" ch")
		client.expect(t, "-NOPERM this user has no permissions to run the '"+command+"' command")
	}
	takesEffect(t, in)
	client.send(t, "PUBLISH ch x") // the channel itself is still allowed
	client.expect(t, ":0")
	heals(t, in)
	client.send(t, "SUBSCRIBE ch")
	client.expect(t, "*3")
}
