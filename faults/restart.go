package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// restart kills a server and starts it again with the data on its disk: an upgrade, a supervisor. Without a duration it
// restarts at once; with one, after that time, as an operator does who waits until every lease that it may have granted
// has expired (antirez 2016: delayed restarts).
var restartSpec = Spec{
	Name:      "restart",
	Doc:       "kills a server (SIGKILL) and restarts it with the data on its disk, at once or after a while (for).",
	Source:    "redis.io, Distributed Locks: performance, crash recovery and fsync",
	Class:     history.FaultRestarts,
	Object:    history.ObjectProcess,
	Verb:      "was killed",
	Targets:   []Target{Master, Replica, Deciding, Node, Nodes, Minority, Majority},
	OneShot:   true,
	Down:      true,
	Resources: serverProcess,
	Lacks:     lacksKiller,
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		servers := env.Cluster.(cluster.Killer)
		return killed(target, servers.Kill, servers.Restart).inject(ctx, env.Cluster, target)
	},
}
