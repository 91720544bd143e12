package workloads

import (
	"context"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/workloads/workload"
)

// semaphore is a pool of connections or a limit of concurrent calls. No client writes the guarded counter, because
// several hold permits at the same time; checker permits counts the permits instead.
var semaphoreSpec = workload.Spec{
	Name: workload.Semaphore,
	Doc: "every client in a loop: acquire one permit of a key, or one time out of four several at once, work, " +
		"release them all.",
	Source: "Dijkstra 1965, EWD 123; Redisson's RSemaphore and RPermitExpirableSemaphore",
	Needs:  promise.Permits,
	Client: semaphoreClient,
}

// One of severalShare acquires is for more than one permit.
const severalShare = 4

func semaphoreClient(ctx context.Context, stop <-chan struct{}, e workload.Env) {
	loop(ctx, stop, e, false, func(a *client.Acquire) {
		a.Permits, a.Limit = 1, e.Params.Permits
		if e.Params.Permits > 1 && e.Rand.IntN(severalShare) == 0 {
			a.Permits = 2 + e.Rand.IntN(e.Params.Permits-1)
		}
	})
}
