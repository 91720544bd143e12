package workloads

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
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
	keys := e.Params.KeyNames()
	for going(ctx, stop) && e.Session.Alive() {
		want := Want{
			Key: keys[e.Rand.IntN(len(keys))], Permits: 1, Limit: e.Params.Permits,
			Lease: e.Params.Lease, Wait: e.wait(),
		}
		if e.Params.Permits > 1 && e.Rand.IntN(severalOf) == 0 {
			want.Permits = 2 + e.Rand.IntN(e.Params.Permits-1)
		}
		h, got := e.Session.Acquire(ctx, want)
		if got != history.OK {
			pause(ctx, stop, backoff(e))
			continue
		}
		e.Session.Work(ctx, h, e.Params.Hold+chance(e, e.Params.Jitter))
		e.Session.Release(ctx, h)
		pause(ctx, stop, e.Params.Think+chance(e, e.Params.Jitter))
	}
}
