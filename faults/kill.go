package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// kill ends a server as the kernel's OOM killer does; unreplicated writes are lost. Healing restarts it with the data
// on its disk, by default none. Data that the kernel has not written to disk yet are not lost: see power-loss.
var killSpec = Spec{
	Name:      "kill",
	Doc:       "kills a server (SIGKILL); healing restarts it with the data on its disk.",
	Source:    "redis.io, Distributed Locks: why failover-based implementations are not enough",
	Class:     history.FaultKills,
	Object:    history.ObjectProcess,
	Verb:      "was killed",
	Targets:   []Target{Master, Replica, Node},
	HealLast:  true,
	Down:      true,
	Resources: serverProcess,
	Lacks:     lacksKiller,
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		servers := env.Cluster.(cluster.Killer)
		if err := servers.Kill(ctx, target); err != nil {
			return nil, err
		}
		return &injection{observe: already("process exited"), undo: func(ctx context.Context) (string, error) {
			err := servers.Restart(ctx, target)
			if err != nil && responds(ctx, env.Cluster, target) { // it was killed twice, and the other fault was healed first
				return target + " already runs", nil
			}
			return target + " restarted", err
		}}, nil
	},
}
