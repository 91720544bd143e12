package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// power-loss ends a machine and not only a process: what the server had written
// and not fsynced is gone, which a SIGKILL cannot show. With appendfsync
// everysec that is up to a second of grants, with no up to half a minute.
var powerLossSpec = Spec{
	Name:      "power-loss",
	Doc:       "cuts the power of a server: what it had not fsynced is lost; it restarts at once or after a while (for).",
	Source:    "redis.io, Distributed Locks: fsync=always, or an instance may come back without the key",
	Targets:   []Target{Master, Replica, Deciding, Node, Nodes, Minority, Majority},
	OneShot:   true,
	Down:      true,
	Resources: serverProcess,
	Requires:  cluster.Requirements{Disks: true},
	Lacks: func(c cluster.Cluster) string {
		if why := can[cluster.Killer](c, "start a server again"); why != "" {
			return why
		}
		return can[cluster.Disks](c, "cut the power of a server")
	},
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		return down(ctx, target, env.Cluster.(cluster.Disks).PowerOff, env.Cluster.(cluster.Killer).Restart)
	},
}
