package faults

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// node-deleted removes the holder of a lock on ZooKeeper or etcd from its queue: an operator who wants to help, a
// program that cleans up. The session or the lease of the holder continues; a client that does not watch its own node
// or key learns of it when it releases.
var nodeDeletedSpec = Spec{
	Name:       "node-deleted",
	Doc:        "deletes the nodes (ZooKeeper) or keys (etcd) of the holders of the locks, once, as soon as one exists.",
	Source:     "Curator's recipes: an ephemeral node is the lock, and any client with the permission may delete it",
	Class:      history.FaultRemoves,
	Object:     history.ObjectKeys,
	Verb:       "lost holders",
	Targets:    []Target{Master, Node},
	Topologies: []string{cluster.ZooKeeper, cluster.Etcd},
	OneShot:    true,
	Lacks:      lacks[cluster.Entries]("delete the nodes of holders"),
	Inject: func(_ context.Context, env Env, target string) (Injection, error) {
		return newCommand(target, func(ctx context.Context) (string, bool, error) {
			deleted := 0
			for _, key := range env.Keys {
				n, err := env.Cluster.(cluster.Entries).DeleteHeld(ctx, target, key)
				deleted += n
				if err != nil && deleted == 0 {
					return "", false, fmt.Errorf("deleting the holder of %s: %w", key, err)
				}
			}
			return format.Count(deleted, "holder") + " deleted", deleted > 0, nil
		}), nil
	},
}
