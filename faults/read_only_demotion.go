package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// read-only-demotion makes a master a replica while clients are connected to it: they get READONLY, as from a master
// that a failover has demoted and whose address they still use. It replicates from an address at which no server
// listens, so that it keeps its data.
var readOnlyDemotionSpec = Spec{
	Name:       "read-only-demotion",
	Doc:        "demotes a master to a read-only replica (REPLICAOF) until healed.",
	Source:     "redis/go-redis#2127, redisson#2639: READONLY after a failover",
	Class:      history.FaultDemotes,
	Object:     "role",
	Verb:       "was made a read-only replica",
	Targets:    []Target{Master, Deciding, Node},
	Topologies: []string{cluster.Single, cluster.Replicated, cluster.Quorum},
	Down:       true,
	Resources:  func(_ cluster.Cluster, node string) []Resource { return []Resource{{Name: "the role of " + node}} },
	Lacks:      lacksAdmin,
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		admin := env.Cluster.(cluster.Admin)
		if _, err := admin.Do(ctx, target, "REPLICAOF", unusedAddress, "1"); err != nil {
			return nil, err
		}
		return &injection{
			observe: awaitNodeIn(env.Cluster, roleReplica, target, target+" is a read-only replica"),
			undo: func(ctx context.Context) (string, error) {
				_, err := admin.Do(ctx, target, "REPLICAOF", "NO", "ONE")
				return target + " is master again", err
			},
		}, nil
	},
}

// unusedAddress is a loopback address at which no server listens.
const unusedAddress = "127.0.9.9"
