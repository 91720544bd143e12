package faults

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// restart-empty kills a server and starts it again with an empty disk: a container whose volume was not kept, a
// replacement by the orchestrator. A member of a quorum then votes a second time.
var restartEmptySpec = Spec{
	Name:      "restart-empty",
	Doc:       "kills a server (SIGKILL), empties its disk and restarts it, at once or after a while (for).",
	Source:    "Kleppmann 2016; redis.io, Distributed Locks: a restarted instance without persistence",
	Class:     history.FaultForgets,
	Object:    history.ObjectData,
	Verb:      "was killed",
	Targets:   []Target{Master, Replica, Deciding, Node, Nodes, Minority, Majority},
	OneShot:   true,
	Down:      true,
	Resources: serverProcess,
	Lacks:     lacksDisks("empty a disk"),
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		servers, disks := env.Cluster.(cluster.Killer), env.Cluster.(cluster.Disks)
		return killed(target, servers.Kill, func(ctx context.Context, node string) error {
			if err := disks.Wipe(ctx, node); err != nil {
				return fmt.Errorf("starting %s empty: %w", node, err)
			}
			return servers.Restart(ctx, node)
		}).inject(ctx, env.Cluster, target)
	},
}
