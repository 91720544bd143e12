package faults

import (
	"slices"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestNodesDown: which servers a fault takes down, as far as the plan determines it.
func TestNodesDown(t *testing.T) {
	quorum := cluster.Topology{Kind: cluster.Quorum}
	for _, test := range []struct {
		fault, target string
		nodes         []string
		others        int
	}{
		{"kill", "n2", []string{"n2"}, 0},
		{"kill", "", nil, 1},
		{"restart", "n1+n4", []string{"n1", "n4"}, 0},
		{"restart-empty", "minority", []string{"n1", "n2"}, 0},
		{"power-loss", "majority", []string{"n1", "n2", "n3"}, 0},
		{"unplug", "n2+n4", []string{"n2", "n4"}, 0},
		{"unplug", "", nil, 1},
		{"partition", "deciding", nil, 1},
		{"partition", "holder", nil, 0},
		{"partition", "client:0>n1", nil, 0},
		{"partition-one-way", "n3", []string{"n3"}, 0},
		{"slow-node", "n3", nil, 0},
		{"pause-client", "holder", nil, 0},
	} {
		row, err := Lookup(test.fault)
		if err != nil {
			t.Fatal(err)
		}
		nodes, others := row.NodesDown(row.PlannedTarget(test.target, quorum))
		if !slices.Equal(nodes, test.nodes) || others != test.others {
			t.Errorf("%s %s: %v and %d others, want %v and %d", test.fault, test.target, nodes, others, test.nodes, test.others)
		}
	}
}

// TestPlannedResources: a fault controls the same resources in the plan as in a cluster.
func TestPlannedResources(t *testing.T) {
	for _, row := range Catalog() {
		kind := cluster.Sentinel
		if row.Topologies != nil {
			kind = row.Topologies[0]
		}
		f := newFake(kind)
		for _, target := range []string{"n1", "client:0", "n2>n1", "all"} {
			if row.CheckTarget(target) != nil {
				continue
			}
			if got, want := row.PlannedResources(target, f.Topology()), row.ResourcesAt(f, target); !slices.Equal(got, want) {
				t.Errorf("%s %s: %v in the plan, %v in a cluster", row.Name, target, got, want)
			}
		}
	}
	if got := killSpec.PlannedResources("master", cluster.Topology{Kind: cluster.Sentinel}); got != nil {
		t.Errorf("the master is not known in the plan, got %v", got)
	}
}
