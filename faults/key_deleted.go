package faults

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// key-deleted removes the keys of the locks under their holders: an operator
// who helps, an eviction when the memory is full.
var keyDeletedSpec = Spec{
	Name:    "key-deleted",
	Doc:     "deletes the locks' own keys at a server (DEL), once, when there are any.",
	Source:  "rueidislock's README: a deleted key is a lost lock; maxmemory with an allkeys policy evicts locks",
	Targets: []Target{Master, Deciding, Node},
	OneShot: true,
	Lacks:   unableToCommand,
	Inject: func(_ context.Context, env Env, target string) (Injection, error) {
		return newStroke(target, func(ctx context.Context) (string, bool, error) {
			var deleted int64
			for _, key := range env.Keys { // one by one: in a cluster they need not be in one slot
				reply, err := env.Cluster.(cluster.Admin).Do(ctx, target, "DEL", key)
				if err != nil {
					return "", false, err
				}
				n, _ := reply.(int64)
				deleted += n
			}
			return fmt.Sprintf("%d keys of locks at %s were deleted", deleted, target), deleted > 0, nil
		}), nil
	},
}
