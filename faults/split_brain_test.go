package faults

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestSplitBrain(t *testing.T) {
	f := newFake(cluster.Sentinel)
	in := inject(t, splitBrainSpec, f.env(), "n1")
	did(t, f, "rule n2>n1 3 1", "rule n1>n2 3 1", "rule n3>n1 3 1", "rule n1>n3 3 1",
		"rule s1>n1 3 1", "rule s2>n1 3 1", "rule s3>n1 3 1")
	noEffectYet(t, in)
	f.set(func() { f.roles["n3"] = "master" })
	if effect := takesEffect(t, in); effect != "n1 and n3 are both master" {
		t.Error(effect)
	}
	heals(t, in)
	if got := strings.Join(f.done(), " "); strings.Count(got, " 3 0") != 7 {
		t.Error(got)
	}
}

func TestSplitBrainOfRealServers(t *testing.T) {
	t.Parallel()
	c := startServers(t, cluster.Sentinel)
	client := dial(t, c, 1)
	in := inject(t, splitBrainSpec, Env{Cluster: c}, "n1")
	takesEffect(t, in)
	client.send(t, "SET k v") // the old master still serves its clients
	client.expect(t, "+OK")
	heals(t, in) // Sentinel demotes it about ten seconds later
}
