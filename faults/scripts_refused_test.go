package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestScriptsRefusedOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	in := inject(t, scriptsRefusedSpec, Env{Cluster: c}, "n1")
	client := dial(t, c, 1)
	client.send(t, "SET k v") // commands without a script continue
	client.expect(t, "+OK")
	noEffectYet(t, in)
	client.send(t, `EVAL "return redis.call('DEL','k')" 0`)
	client.expect(t, "-NOPERM this user has no permissions to run the 'eval' command")
	takesEffect(t, in)
	heals(t, in)
	client.send(t, `EVAL "return redis.call('DEL','k')" 0`)
	client.expect(t, ":1")
}
