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
	doesNotBite(t, in) // nobody has asked for a script
	f.set(func() { f.replies["INFO errorstats"] = "# Errorstats\r\nerrorstat_NOSCRIPT:count=6\r\n" })
	if proof := bites(t, in); proof != "n1 has answered NOSCRIPT 2 times" {
		t.Error(proof)
	}
}

func TestScriptFlushOfARealServer(t *testing.T) {
	c := servers(t, cluster.Single)
	digest := command(t, c, "n1", "SCRIPT", "LOAD", "return 1").(string)
	in := inject(t, scriptFlushSpec, Env{Cluster: c}, "n1")
	doesNotBite(t, in)
	client := dial(t, c, 1)
	client.say(t, "EVALSHA "+digest+" 0")
	client.hears(t, "-NOSCRIPT No matching script. Please use EVAL.")
	bites(t, in)
	heals(t, in)
}
