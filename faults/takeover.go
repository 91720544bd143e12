package faults

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// takeover is a row for one of the ways in which a replica of a Redis Cluster becomes master. The keys move with the
// slots; a write that the replica has not received is lost, unless the master waits for it.
func takeover(mode []any, s Spec) Spec {
	s.Targets = []Target{Replica, Behind, Node}
	s.Topologies = []string{cluster.Sharded}
	s.OneShot = true
	s.Lacks = lacksAdmin
	s.Inject = func(ctx context.Context, env Env, target string) (Injection, error) {
		args := append([]any{"CLUSTER", "FAILOVER"}, mode...)
		if _, err := env.Cluster.(cluster.Admin).Do(ctx, target, args...); err != nil {
			return nil, fmt.Errorf("starting a failover to %s: %w", target, err)
		}
		observe := awaitNodeIn(env.Cluster, roleMaster, target, target+" is master")
		return &injection{observe: observe, undo: nothingToUndo}, nil
	}
	return s
}
