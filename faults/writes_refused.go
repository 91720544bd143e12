package faults

import (
	"context"
	"errors"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// writes-refused makes the servers of an ensemble refuse requests that acquire or release locks. Sessions and leases
// continue: a client that does not repeat a refused release keeps the lock for as long as it lives.
var writesRefusedSpec = Spec{
	Name:       "writes-refused",
	Doc:        "ZooKeeper refuses writes below the nodes of locks (rights); etcd all but deletions (full database).",
	Affects:    history.AffectsCommands,
	Source:     "ZooKeeper Programmer's Guide, ACL permissions; etcd.io, Maintenance: space quota",
	Class:      history.FaultRefuses,
	Object:     "writes",
	Verb:       "refused writes",
	Targets:    []Target{Master, Node},
	Topologies: []string{cluster.ZooKeeper, cluster.Etcd},
	Resources: func(cluster.Cluster, string) []Resource {
		return []Resource{{Name: "the rights to write"}}
	},
	Lacks: lacks[cluster.Entries]("change the rights of nodes"),
	Inject: func(_ context.Context, env Env, target string) (Injection, error) {
		set := func(ctx context.Context, writable bool) (changed bool, err error) {
			for _, key := range env.Keys {
				did, failed := env.Cluster.(cluster.Entries).SetWritable(ctx, target, key, writable)
				changed = changed || did
				err = errors.Join(err, failed)
			}
			return changed, err
		}
		return newCommand(target, func(ctx context.Context) (string, bool, error) {
			changed, err := set(ctx, false)
			return "writes are refused", changed, err
		}).undoneBy(func(ctx context.Context) (string, error) {
			return "writes are allowed", settle(ctx, func() (bool, error) {
				_, err := set(ctx, true)
				return err == nil, err
			})
		}), nil
	},
}
