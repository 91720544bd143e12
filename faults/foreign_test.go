package faults

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestForeign lists every fault that a run may inject at servers that it did not start. A new one is
// listed here on purpose, so that no fault breaks the servers of others by mistake.
func TestForeign(t *testing.T) {
	want := map[string]bool{
		"partition": true, "partition-one-way": true, "latency": true, "jitter": true, "bandwidth": true,
		"slow-node": true, "packet-late": true, "packet-lost": true, "connection-reset": true, "reply-lost": true,
		"reply-late": true, "grant-reply-lost": true, "grant-reply-late": true, "message-lost": true,
		"silent-connections": true, "request-resent": true, "request-duplicated": true,
		"pause-client": true, "client-crash": true, "client-restart": true,
	}
	failovers := map[string]bool{"failover": true, "cluster-failover": true}
	kinds := []string{cluster.Single, cluster.Sentinel, cluster.Sharded, cluster.Quorum}
	for _, allowed := range []bool{false, true} {
		got := map[string]bool{}
		for _, row := range Catalog() {
			for _, kind := range kinds {
				if row.Foreign("", cluster.Topology{Kind: kind}.Defaults(), allowed) == "" {
					got[row.Name] = true
				}
			}
		}
		if allowed {
			for name := range failovers {
				want[name] = true
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("failover %v (-want +got):\n%s", allowed, diff)
		}
	}
}

// TestGivenServers lists every fault of servers of any kind that run already, and of a lock without servers.
func TestGivenServers(t *testing.T) {
	clients := []string{"pause-client", "client-crash", "client-restart"}
	for want, top := range map[string]cluster.Topology{
		"": {Kind: cluster.None},
		"partition partition-one-way latency jitter bandwidth slow-node packet-late packet-lost connection-reset " +
			"silent-connections reply-lost reply-late ": {Kind: cluster.Command, Addrs: []string{"a:1", "b:1"}},
	} {
		var got []string
		for _, row := range Catalog() {
			if row.WrongServers(top.Defaults()) == "" {
				got = append(got, row.Name)
			}
		}
		if diff := cmp.Diff(append(strings.Fields(want), clients...), got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", top, diff)
		}
	}
}

// TestClocksOfServersOfTheUser are changed if a program prints them, or no effect could be observed.
func TestClocksOfServersOfTheUser(t *testing.T) {
	own := cluster.Topology{Kind: cluster.Command, Run: "server"}
	if why := clockJumpSpec.WrongServers(own); !strings.Contains(why, "topology.clock") {
		t.Errorf("without a program: %q", why)
	}
	own.Clock = &cluster.Program{Command: "program"}
	if why := clockJumpSpec.WrongServers(own); why != "" {
		t.Errorf("with a program: %q", why)
	}
}

// TestForeignTargets: traffic between servers passes no gate of the run.
func TestForeignTargets(t *testing.T) {
	sentinel := cluster.Topology{Kind: cluster.Sentinel, Replicas: 4}.Defaults()
	for target, allowed := range map[string]bool{
		"n1": true, "master": true, "holder": true, "client:1>n2": true, "holder>master": true, "n1+n2": true,
		"n2>n1": false, "replica>master": false, "ring": false, "bridge": false,
	} {
		if why := partitionSpec.Foreign(target, sentinel, true); (why == "") != allowed {
			t.Errorf("partition of %s: %q, allowed must be %v", target, why, allowed)
		}
	}
}
