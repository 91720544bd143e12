package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// flushall empties a server: a command meant for the test system. Holders, tokens and queues are lost; clients and
// subscriptions stay connected.
var flushallSpec = Spec{
	Name:      "flushall",
	OnlyRedis: "keys",
	Doc:       "removes every key of a server (FLUSHALL), once, as soon as it has any.",
	Source:    "every post-mortem of a shared cache that was also the lock server",
	Targets:   []Target{Master, Deciding, Node},
	Affects:   history.AffectsData + " " + history.AffectsMessages, // nobody announces that a lock is free
	OneShot:   true,
	Lacks:     lacksAdmin,
	Inject: func(_ context.Context, env Env, target string) (Injection, error) {
		admin := env.Cluster.(cluster.Admin)
		return newCommand(target, func(ctx context.Context) (string, bool, error) {
			n, err := number(ctx, admin, target, "DBSIZE")
			if err != nil || n == 0 {
				return "", false, err
			}
			_, err = admin.Do(ctx, target, "FLUSHALL")
			return format.Count(n, "key") + " removed", err == nil, err
		}), nil
	},
}
