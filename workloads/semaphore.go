package workloads

import (
	"context"

	"github.com/lockchaos/lockchaos/client"
)

// semaphore is what a pool of connections or a limit of calls does: several may
// be inside, as many as there are permits. Nobody writes at the guarded
// resource, for nothing keeps its users apart; whether more permits were out
// than there are is judged from who had how many when.
var semaphoreSpec = Spec{
	Name: "semaphore",
	Doc: "every client again and again: acquire one permit of a key, or every fourth time several at once, work, " +
		"release them all.",
	Source: "Dijkstra 1965, EWD 123; Redisson's RSemaphore and RPermitExpirableSemaphore",
	Client: semaphoreClient,
}

// severalOf is of how many acquires one is for more than one permit.
const severalOf = 4

func semaphoreClient(ctx context.Context, stop <-chan struct{}, e Env) {
	again(ctx, stop, e, false, func(a *client.Acquire) {
		a.Permits, a.Limit = 1, e.Params.Permits
		if e.Params.Permits > 1 && e.Rand.IntN(severalOf) == 0 {
			a.Permits = 2 + e.Rand.IntN(e.Params.Permits-1)
		}
	})
}
