package faults

import (
	"context"
	"errors"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// pause-node stops a server without ending it: its connections stay open, its keys do not expire until it resumes, and
// a master that was replaced meanwhile believes for a while that it still is one (a paused virtual machine, a swapping
// host).
var pauseNodeSpec = Spec{
	Name:    "pause-node",
	Doc:     "stops a server without ending it (SIGSTOP) until healed.",
	Affects: history.AffectsTraffic,
	Source:  "jepsen hammer-time; redis.io Sentinel: a partitioned master",
	Class:   history.FaultPauses,
	Object:  history.ObjectProcess,
	Verb:    "was paused",
	Targets: []Target{Master, Replica, Node},
	Down:    true,
	Lacks:   lacks[cluster.Pauser]("pause a server"),
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		servers := env.Cluster.(cluster.Pauser)
		if err := servers.Pause(ctx, target); err != nil {
			return nil, err
		}
		return &injection{observe: already("process stopped"), undo: func(ctx context.Context) (string, error) {
			err := servers.Resume(ctx, target)
			if errors.Is(err, cluster.ErrDown) { // another fault has killed it, and will restart it
				return target + " was killed while stopped", nil
			}
			return target + " resumed", err
		}}, nil
	},
}
