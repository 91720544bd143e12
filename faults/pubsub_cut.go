package faults

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// pubsub-cut ends every subscription at a server, once. A message that is
// published before the subscriber is back has gone to nobody: pub/sub keeps nothing.
var pubsubCutSpec = Spec{
	Name:    "pubsub-cut",
	Doc:     "ends every subscription at a server (CLIENT KILL TYPE pubsub), once.",
	Source:  "redisson#4744, redisson#3287: waiters that nobody wakes",
	Targets: []Target{Master, Replica, Node},
	OneShot: true,
	Lacks:   unableToCommand,
	Inject: func(_ context.Context, env Env, target string) (Injection, error) {
		return newStroke(target, func(ctx context.Context) (string, bool, error) {
			reply, err := env.Cluster.(cluster.Admin).Do(ctx, target, "CLIENT", "KILL", "TYPE", "pubsub")
			n, _ := reply.(int64)
			return fmt.Sprintf("%d subscriptions at %s were ended", n, target), n > 0, err
		}), nil
	},
}
