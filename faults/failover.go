package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// failover asks Sentinel to replace a master, as an operator does. It has taken effect when another node reports the
// role of master: Sentinel announces it about a second later, and clients learn it later still.
var failoverSpec = Spec{
	Name:       "failover",
	Doc:        "makes Sentinel (without Sentinels: an operator) promote a replica in place of the master.",
	Source:     "redis.io, Sentinel: SENTINEL FAILOVER",
	Class:      history.FaultDemotes,
	Object:     "role",
	Verb:       "was failed over",
	Targets:    []Target{Master, Node},
	Topologies: []string{cluster.Sentinel, cluster.Replicated, cluster.Postgres},
	OneShot:    true,
	Lacks:      lacks[cluster.Promoter]("promote a replica"),
	Inject: func(ctx context.Context, env Env, old string) (Injection, error) {
		if slices.Contains(withRole(sampleAll(ctx, env.Cluster), roleReplica), old) {
			return nil, fmt.Errorf("requesting a failover: %s is a replica; the target is the master to replace", old)
		}
		if err := env.Cluster.(cluster.Promoter).Promote(ctx); err != nil {
			return nil, fmt.Errorf("requesting a failover: %w", err)
		}
		observe := awaitRole(env.Cluster, roleMaster, "a promoted replica", func(masters []string) (string, bool) {
			other := slices.DeleteFunc(masters, func(node string) bool { return node == old })
			return fmt.Sprintf("%s is master instead of %s", strings.Join(other, " and "), old), len(other) > 0
		})
		return &injection{observe: observe, undo: nothingToUndo}, nil
	},
}
