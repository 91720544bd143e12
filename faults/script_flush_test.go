package faults

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestScriptFlush(t *testing.T) {
	f := newFake(cluster.Single)
	f.replies["INFO errorstats"] = "# Errorstats\r\nerrorstat_NOSCRIPT:count=4\r\n"
	in := inject(t, scriptFlushSpec, f.env(), "n1")
	did(t, f, "n1: INFO errorstats", "n1: SCRIPT FLUSH")
	noEffectYet(t, in) // no script was called
	f.set(func() { f.replies["INFO errorstats"] = "# Errorstats\r\nerrorstat_NOSCRIPT:count=6\r\n" })
	if effect := takesEffect(t, in); effect != "2 NOSCRIPT replies" {
		t.Error(effect)
	}
}

func TestScriptFlushOfARealServer(t *testing.T) {
	c := startServers(t, cluster.Single)
	digest := run(t, c, "n1", "SCRIPT", "LOAD", "return 1").(string)
	in := inject(t, scriptFlushSpec, Env{Cluster: c}, "n1")
	noEffectYet(t, in)
	client := dial(t, c, 1)
	client.send(t, "EVALSHA "+digest+" 0")
	client.expect(t, "-NOSCRIPT No matching script. Please use EVAL.")
	takesEffect(t, in)
	heals(t, in)
}
