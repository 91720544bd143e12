package faults

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestReplicationHold(t *testing.T) {
	f := newFake(cluster.Sentinel)
	in := inject(t, replicationHoldSpec, f.env(), "n2") // the master, for this test
	held := []string{"rule n1>n2 2 1", "rule n3>n2 2 1"}
	if diff := cmp.Diff(held, f.done()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	noEffectYet(t, in)
	f.set(func() { f.waiting["n1"] = 10 })
	noEffectYet(t, in) // n3 has everything
	f.set(func() { f.waiting["n3"] = 5 })
	if effect := takesEffect(t, in); effect != "15 bytes held from 2 replicas" {
		t.Error(effect)
	}
	heals(t, in)
	if diff := cmp.Diff([]string{"rule n1>n2 2 0", "rule n3>n2 2 0"}, f.done()); diff != "" {
		t.Errorf("healed (-want +got):\n%s", diff)
	}
}

// TestLinkFaultThatFails: rules that were set before one failed are removed, because a failed injection is not healed;
// and one link that cannot be healed does not prevent healing of the other.
func TestLinkFaultThatFails(t *testing.T) {
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
	if in, err := replicationHoldSpec.Inject(t.Context(), f.env(), "n1"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
}

// TestReplicationHoldOnRealServers: redis-server itself writes to its replicas every second (PING), so that something
// is held soon.
func TestReplicationHoldOnRealServers(t *testing.T) {
	c := startServers(t, cluster.Sentinel)
	in := inject(t, replicationHoldSpec, Env{Cluster: c}, "n1")
	takesEffect(t, in)
	heals(t, in)
	for _, n := range []string{"n2", "n3"} {
		traffic, err := c.Traffic(cluster.Link{From: n, To: "n1"}, cluster.Back)
		if err != nil || traffic.Dropped != 0 || traffic.Resets != 0 {
			t.Errorf("%s: %+v, %v, want no loss", n, traffic, err)
		}
	}
	becomes(t, c, "master", "slave", "slave")
}
