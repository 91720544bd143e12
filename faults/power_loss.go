package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// power-loss stops a machine and not only a process: data that the server had written but not fsynced are lost, which a
// SIGKILL cannot show. With appendfsync everysec that is up to a second of grants, with no up to half a minute.
var powerLossSpec = Spec{
	Name:      "power-loss",
	Doc:       "cuts a server's power: writes not fsynced are lost; it restarts at once or after a while (for).",
	Source:    "redis.io, Distributed Locks: without fsync=always an instance may restart without the key",
	Class:     history.FaultForgets,
	Object:    "unsynced writes",
	Verb:      "lost power",
	Targets:   []Target{Master, Replica, Deciding, Node, Nodes, Minority, Majority},
	OneShot:   true,
	Down:      true,
	Resources: serverProcess,
	Requires:  cluster.Requirements{Disks: true},
	Lacks:     lacksDisks("cut the power of a server"),
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		down, up := env.Cluster.(cluster.Disks).PowerOff, env.Cluster.(cluster.Killer).Restart
		return killed(target, down, up).inject(ctx, env.Cluster, target)
	},
}
