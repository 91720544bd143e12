package faults

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestSlotMigrationHasNothingToMoveToTheOwner(t *testing.T) {
	c := startServers(t, cluster.Sharded)
	_, err := slotMigrationSpec.Inject(t.Context(), Env{Cluster: c, Keys: []string{"orders"}}, "n1")
	if err == nil || !strings.Contains(err.Error(), "n1 has the slots of all locks") {
		t.Errorf("error: %v", err)
	}
}

func TestSlotMigrationOfRealServers(t *testing.T) {
	c := startServers(t, cluster.Sharded)
	client := dial(t, c, 1)
	client.send(t, "SET orders v PX 60000")
	client.expect(t, "+OK")
	in := inject(t, slotMigrationSpec, Env{Cluster: c, Keys: []string{"orders"}}, "n2")
	client.send(t, "GET orders") // it is still there
	client.expect(t, "$1")
	client.expect(t, "v")
	noEffectYet(t, in)
	client.send(t, "GET {orders}new")
	client.expect(t, "-ASK 105 "+c.Nodes()[1].Addr)
	takesEffect(t, in)
	there := dial(t, c, 2)
	there.send(t, "ASKING")
	there.expect(t, "+OK")
	there.send(t, "SET {orders}new owner PX 60000")
	there.expect(t, "+OK")
	sample := c.Sample(t.Context(), "n2", []string{"{orders}new"})
	if got := sample.Keys["{orders}new"]; got.Owner != "owner" {
		t.Errorf("the sample of the importing master has %+v of the new key", got)
	}
	// MIGRATE would wait for a gate that holds requests of unknown callers, and the source with it.
	held := cluster.Link{From: cluster.UnknownClient, To: "n2"}
	if err := c.SetRule(held, cluster.Forward, cluster.Rule{Mode: cluster.Hold}); err != nil {
		t.Fatal(err)
	}
	if how := heals(t, in); how != "1 slot and 1 key moved to n2" {
		t.Error(how)
	}
	client.send(t, "GET orders")
	client.expect(t, "-MOVED 105 "+c.Nodes()[1].Addr)
	there.send(t, "GET orders")
	there.expect(t, "$1")
	there.expect(t, "v")
}
