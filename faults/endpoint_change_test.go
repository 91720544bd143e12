package faults

import (
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

func TestEndpointChange(t *testing.T) {
	for _, test := range []struct{ target, did, effect string }{
		{"n1", `move the address, demote true, stale ""`, "n2 is master instead of n1, which still replied to a client"},
		{"all", `move the address, demote false, stale ""`, "n2 is master instead of n1, which still replied to a client"},
		{"client:3", `move the address, demote false, stale "client:3"`,
			"n2 is master instead of n1, which still replied to client:3"},
	} {
		f := newFake(cluster.Replicated)
		f.set(func() { f.passed["*"], f.passed["n2"], f.passed["n3"] = 100, 20, 10 })
		in := inject(t, endpointChangeSpec, f.env(), test.target)
		did(t, f, test.did)
		f.set(func() { f.roles["n2"] = "master" })
		noEffectYet(t, in)
		f.set(func() { f.passed["*"], f.passed["n2"] = 105, 25 }) // a replica was served
		noEffectYet(t, in)
		f.set(func() { f.passed["*"], f.passed["client:3"] = 106, 1 })
		f.set(func() { f.roles["n2"] = "slave" })
		noEffectYet(t, in)
		f.set(func() { f.roles["n2"] = "master" })
		if effect := takesEffect(t, in); effect != test.effect {
			t.Error(effect)
		}
		if how := heals(t, in); how != "n1 is a replica of n2" {
			t.Error(how)
		}
		did(t, f, "settle the address")
	}
}

func TestEndpointChangeFails(t *testing.T) {
	f := newFake(cluster.Replicated)
	f.errs["traffic"] = errBroken
	if in, err := endpointChangeSpec.Inject(t.Context(), f.env(), "all"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
	did(t, f, `move the address, demote false, stale ""`, "settle the address")
	f.errs[`move the address, demote false, stale ""`] = errBroken
	if in, err := endpointChangeSpec.Inject(t.Context(), f.env(), "all"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
	did(t, f, `move the address, demote false, stale ""`)
}

// TestEndpointChangeOfRealServers: connections that are open stay with the old master, which refuses writes or accepts
// them until the fault is healed, and new ones reach the new master.
func TestEndpointChangeOfRealServers(t *testing.T) {
	t.Parallel()
	c := startServers(t, cluster.Replicated)
	run(t, c, "n1", "SET", "before", "v")
	gets(t, c, "n2", "before", "v")
	gets(t, c, "n3", "before", "v")
	open := dial(t, c, 1)
	in := inject(t, endpointChangeSpec, Env{Cluster: c}, "all")
	open.send(t, "SET k old")
	open.expect(t, "+OK")
	takesEffect(t, in)
	fresh := dial(t, c, 1)
	fresh.send(t, "SET k new")
	fresh.expect(t, "+OK")
	heals(t, in)
	open.send(t, "SET k old")
	open.expect(t, "-READONLY You can't write against a read only replica.")
	gets(t, c, "n1", "k", "new")
	gets(t, c, "n3", "k", "new")
}

// TestEndpointChangeForAClient: only the client with the stale address reaches the old master.
func TestEndpointChangeForAClient(t *testing.T) {
	t.Parallel()
	c := startServers(t, cluster.Replicated)
	other := dialAs(t, c, 1, 1)
	in := inject(t, endpointChangeSpec, Env{Cluster: c}, "client:0")
	other.expect(t, "closed")
	stale := dial(t, c, 1)
	stale.send(t, "SET k old")
	stale.expect(t, "+OK")
	takesEffect(t, in)
	if got := run(t, c, "n1", "GET", "k"); got != "old" {
		t.Errorf("the old master has %v", got)
	}
	heals(t, in)
	fresh := dial(t, c, 1)
	fresh.send(t, "SET k new")
	fresh.expect(t, "+OK")
	gets(t, c, "n1", "k", "new")
}
