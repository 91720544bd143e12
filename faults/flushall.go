package faults

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// flushall empties a server: the command that was meant for the test system.
// Holders, tokens and queues are gone; clients and subscriptions stay.
var flushallSpec = Spec{
	Name:    "flushall",
	Doc:     "removes every key of a server (FLUSHALL), once, when there are any.",
	Source:  "every post-mortem of a shared cache that was also the lock server",
	Targets: []Target{Master, Deciding, Node},
	OneShot: true,
	Lacks:   unableToCommand,
	Inject: func(_ context.Context, env Env, target string) (Injection, error) {
		admin := env.Cluster.(cluster.Admin)
		return newStroke(target, func(ctx context.Context) (string, bool, error) {
			reply, err := admin.Do(ctx, target, "DBSIZE")
			n, _ := reply.(int64)
			if err != nil || n == 0 {
				return "", false, err
			}
			_, err = admin.Do(ctx, target, "FLUSHALL")
			return fmt.Sprintf("%d keys of %s were removed", n, target), err == nil, err
		}), nil
	},
}
