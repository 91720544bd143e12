package faults

import (
	"errors"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
)

// TestUnplug: disconnected servers are reconnected, also when only some of them could be disconnected. What a
// disconnected server does is tested in package internal/cluster/docker.
func TestUnplug(t *testing.T) {
	f := newFake(cluster.Quorum)
	in := inject(t, unplugSpec, f.env(), "n2+n4")
	if effect := takesEffect(t, in); effect != "disconnected" {
		t.Errorf("effect: %s", effect)
	}
	if how := heals(t, in); how != "n2, n4 reconnected" {
		t.Errorf("healed: %s", how)
	}
	did(t, f, "unplug n2", "unplug n4", "plug n2", "plug n4")

	f.errs["unplug n4"] = errBroken
	if in, err := unplugSpec.Inject(t.Context(), f.env(), "n2+n4"); !errors.Is(err, errBroken) || in != nil {
		t.Errorf("Inject = %v, %v", in, err)
	}
	did(t, f, "unplug n2", "unplug n4", "plug n2")
	delete(f.errs, "unplug n4")
	f.errs["plug n2"] = errBroken
	if _, err := inject(t, unplugSpec, f.env(), "n2").Heal(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("Heal = %v", err)
	}
}

// TestUnplugControlsLinksAndProcess: no other fault may control the links of a disconnected server, nor restart it.
func TestUnplugControlsLinksAndProcess(t *testing.T) {
	f := newFake(cluster.Sentinel)
	for _, other := range []struct {
		fault, target string
		want          bool
	}{
		{"kill", "n1", true}, {"kill", "n2", false}, {"partition", "client:0/n1", true}, {"pause-client", "client:0", false},
	} {
		row, err := Lookup(other.fault)
		if err != nil {
			t.Fatal(err)
		}
		got := false
		for _, mine := range unplugSpec.ResourcesAt(f, "n1") {
			for _, theirs := range row.ResourcesAt(f, other.target) {
				got = got || mine.Overlaps(theirs)
			}
		}
		if got != other.want {
			t.Errorf("unplug n1 and %s %s overlap: %v", other.fault, other.target, got)
		}
	}
}

// TestUnplugOnRealServers: a connection hangs while the server is disconnected and works again afterwards.
func TestUnplugOnRealServers(t *testing.T) {
	if why := process.MissingNetwork(); why != "" {
		t.Skip("NOT RUN: ", why)
	}
	c := startServersWith(t, cluster.Topology{Kind: cluster.Single}, cluster.Requirements{Network: true})
	if err := unplugSpec.Check(c); err != nil {
		t.Fatal(err)
	}
	a := dial(t, c, 1)
	in := inject(t, unplugSpec, Env{Cluster: c}, "n1")
	takesEffect(t, in)
	a.send(t, "PING")
	a.expect(t, "silence")
	if got := role(t, c, "n1"); got != "master" {
		t.Errorf("a disconnected server reports the role %q, want master", got)
	}
	heals(t, in)
	a.expect(t, "+PONG")
}
