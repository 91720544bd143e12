package simulated

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/scenarios"
)

// TestUnknownServers: servers that cannot be simulated are refused with the reason, also where nobody has asked before,
// as for the twin of a scenario.
func TestUnknownServers(t *testing.T) {
	simulated := []string{
		cluster.Single, cluster.Replicated, cluster.Sentinel, cluster.Sharded, cluster.Quorum, cluster.ZooKeeper,
	}
	for _, row := range cluster.Topologies() {
		topology := cluster.Topology{Kind: row.Name}
		want := "no simulated servers of topology " + row.Name
		if slices.Contains(simulated, row.Name) {
			if why := missing(scenarios.Scenario{Topology: topology}); strings.Contains(why, want) {
				t.Errorf("%s: %s", row.Name, why)
			}
			continue
		}
		_, err := New(backend.Options{}).Start(t.Context(), backend.Env{Topology: topology})
		if !errors.Is(err, cluster.ErrEnvironment) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", row.Name, err)
		}
	}
}
