package faults

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestReplicationHold(t *testing.T) {
	f := newFake(cluster.Sentinel)
	in := inject(t, replicationHoldSpec, f.env(), "n2") // whoever is master
	held := []string{"rule n1>n2 2 1", "rule n3>n2 2 1"}
	if diff := cmp.Diff(held, f.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	doesNotBite(t, in)
	f.set(func() { f.waiting["n1"] = 10 })
	doesNotBite(t, in) // n3 has everything
	f.set(func() { f.waiting["n3"] = 5 })
	if proof := bites(t, in); proof != "15 bytes of n2's writes are held back from 2 replicas" {
		t.Error(proof)
	}
	heals(t, in)
	if diff := cmp.Diff([]string{"rule n1>n2 2 0", "rule n3>n2 2 0"}, f.done()); diff != "" {
		t.Errorf("healed (-want +got):\n%s", diff)
	}
}

// TestReplicationHoldThatFails: half a hold is undone, because nobody heals
// what could not be injected; and one link that cannot be healed does not keep
// the other from it.
func TestReplicationHoldThatFails(t *testing.T) {
	f := newFake(cluster.Sentinel)
	f.errs["rule n3>n1 2 1"] = errBroken
	if in, err := replicationHoldSpec.Inject(t.Context(), f.env(), "n1"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
	want := []string{"rule n2>n1 2 1", "rule n3>n1 2 1", "rule n2>n1 2 0", "rule n3>n1 2 0"}
	if diff := cmp.Diff(want, f.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	f.errs = map[string]error{"rule n2>n1 2 0": errBroken}
	in := inject(t, replicationHoldSpec, f.env(), "n1")
	if _, err := in.Heal(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("Heal = %v", err)
	}
	if diff := cmp.Diff(want, f.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	f.errs = map[string]error{"traffic": errBroken}
	doesNotBite(t, inject(t, replicationHoldSpec, f.env(), "n1"))
}

// TestReplicationHoldOnRealServers: redis-server itself writes to its replicas
// every second (PING), so something is held back before long.
func TestReplicationHoldOnRealServers(t *testing.T) {
	c := servers(t, cluster.Sentinel)
	in := inject(t, replicationHoldSpec, Env{Cluster: c}, "n1")
	bites(t, in)
	heals(t, in)
	for _, n := range []string{"n2", "n3"} {
		traffic, err := c.Traffic(cluster.Link{From: n, To: "n1"}, cluster.Back)
		if err != nil || traffic.Dropped != 0 || traffic.Resets != 0 {
			t.Errorf("%s: %+v, %v, want nothing lost", n, traffic, err)
		}
	}
	becomes(t, c, "master", "slave", "slave")
}
