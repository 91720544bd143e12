package faults

import (
	"context"
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// script-flush drops a server's script cache, as a restart does: a client that calls a script by its digest gets
// NOSCRIPT and has to send the script again.
var scriptFlushSpec = Spec{
	Name:    "script-flush",
	Doc:     "drops a server's cached scripts (SCRIPT FLUSH); it takes effect when a client gets NOSCRIPT.",
	Source:  "redisson#3387 and similar issues: NOSCRIPT after a restart or failover",
	Targets: []Target{Master, Replica, Deciding, Node},
	OneShot: true,
	Lacks:   lacksAdmin,
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		admin := env.Cluster.(cluster.Admin)
		before, err := noScripts(ctx, admin, target)
		if err != nil {
			return nil, err
		}
		if _, err := admin.Do(ctx, target, "SCRIPT", "FLUSH"); err != nil {
			return nil, err
		}
		return newCommand(target, func(ctx context.Context) (string, bool, error) {
			now, err := noScripts(ctx, admin, target)
			return format.Count(now-before, "NOSCRIPT reply"), now > before, err
		}), nil
	},
}

// noScripts is how often a server has replied NOSCRIPT.
func noScripts(ctx context.Context, a cluster.Admin, node string) (n int, err error) {
	reply, err := a.Do(ctx, node, "INFO", "errorstats")
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(fmt.Sprint(reply), "errorstat_NOSCRIPT:count=")
	if found {
		_, err = fmt.Sscan(rest, &n)
	}
	return n, err
}
