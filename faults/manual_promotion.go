package faults

import (
	"context"
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// manual-promotion is an operator's REPLICAOF NO ONE on a replica that Sentinels watch, which no longer replicates.
// They make it a replica again when it has reported the role of master for more than 8 s: there is nothing to undo.
var manualPromotionSpec = Spec{
	Name:       "manual-promotion",
	Doc:        "makes a replica a master (REPLICAOF NO ONE), as an operator does without SENTINEL FAILOVER.",
	Source:     "sentinel.c, sentinelRefreshInstanceInfo: a replica that claims to be a master",
	Class:      history.FaultPromotes,
	Object:     "role",
	Verb:       "was promoted by hand",
	Targets:    []Target{Replica, Node},
	Topologies: []string{cluster.Sentinel},
	OneShot:    true,
	Resources:  func(_ cluster.Cluster, node string) []Resource { return []Resource{{Name: "the role of " + node}} },
	Lacks:      lacksAdmin,
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		if slices.Contains(withRole(sampleAll(ctx, env.Cluster), roleMaster), target) {
			return nil, fmt.Errorf("promoting %s by hand: it is already a master", target)
		}
		if _, err := env.Cluster.(cluster.Admin).Do(ctx, target, "REPLICAOF", "NO", "ONE"); err != nil {
			return nil, fmt.Errorf("promoting %s by hand: %w", target, err)
		}
		return &injection{
			observe: awaitNodeIn(env.Cluster, roleMaster, target, target+" was promoted by hand"),
			undo:    nothingToUndo,
		}, nil
	},
}
