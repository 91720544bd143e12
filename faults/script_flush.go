package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// script-flush drops a server's script cache, as a restart does: a client that calls a script by its digest gets
// NOSCRIPT and has to send the script again.
var scriptFlushSpec = Spec{
	Name:      "script-flush",
	OnlyRedis: "scripts",
	Doc:       "drops a server's cached scripts (SCRIPT FLUSH); it takes effect when a client gets NOSCRIPT.",
	Affects:   history.AffectsCommands,
	Source:    "redisson#3387 and similar issues: NOSCRIPT after a restart or failover",
	Class:     history.FaultRemoves,
	Object:    "scripts",
	Verb:      "lost its cached scripts",
	Targets:   []Target{Master, Replica, Deciding, Node},
	OneShot:   true,
	Lacks:     lacksAdmin,
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		admin := env.Cluster.(cluster.Admin)
		before, err := errorReplies("NOSCRIPT")(ctx, admin, target)
		if err != nil {
			return nil, err
		}
		if _, err := admin.Do(ctx, target, "SCRIPT", "FLUSH"); err != nil {
			return nil, err
		}
		return newCommand(target, func(ctx context.Context) (string, bool, error) {
			now, err := errorReplies("NOSCRIPT")(ctx, admin, target)
			return format.Count(now-before, "NOSCRIPT reply"), now > before, err
		}), nil
	},
}
