package faults

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// restart-empty ends a server and starts it again with nothing on its disk: a
// container whose volume was not kept, a replacement by the orchestrator. Of a
// quorum it votes a second time.
var restartEmptySpec = Spec{
	Name:      "restart-empty",
	Doc:       "ends a server (SIGKILL), empties its disk and starts it again, at once or after a while (for).",
	Source:    "Kleppmann 2016; redis.io, Distributed Locks: a restarted instance without persistence",
	Targets:   []Target{Master, Replica, Deciding, Node, Nodes, Minority, Majority},
	OneShot:   true,
	Down:      true,
	Resources: serverProcess,
	Lacks: func(c cluster.Cluster) string {
		if why := can[cluster.Killer](c, "kill a server"); why != "" {
			return why
		}
		return can[cluster.Disks](c, "empty a disk")
	},
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		nodes, disks := env.Cluster.(cluster.Killer), env.Cluster.(cluster.Disks)
		return down(ctx, target, nodes.Kill, func(ctx context.Context, node string) error {
			if err := disks.Wipe(ctx, node); err != nil {
				return fmt.Errorf("starting %s empty: %w", node, err)
			}
			return nodes.Restart(ctx, node)
		})
	},
}
