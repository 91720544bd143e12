package faults

import (
	"context"
	"fmt"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// script-flush makes a server forget its scripts, as a restart does: whoever
// calls them by their digest is answered NOSCRIPT, and has to send them again.
var scriptFlushSpec = Spec{
	Name:    "script-flush",
	Doc:     "makes a server forget its scripts (SCRIPT FLUSH); it has bitten when somebody was answered NOSCRIPT.",
	Source:  "redisson#3387 and many like it: NOSCRIPT after a restart or failover",
	Targets: []Target{Master, Replica, Deciding, Node},
	OneShot: true,
	Lacks:   unableToCommand,
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		admin := env.Cluster.(cluster.Admin)
		before, err := noScripts(ctx, admin, target)
		if err != nil {
			return nil, err
		}
		if _, err := admin.Do(ctx, target, "SCRIPT", "FLUSH"); err != nil {
			return nil, err
		}
		return newStroke(target, func(ctx context.Context) (string, bool, error) {
			now, err := noScripts(ctx, admin, target)
			return fmt.Sprintf("%s has answered NOSCRIPT %d times", target, now-before), now > before, err
		}), nil
	},
}

// noScripts is how often a server has answered NOSCRIPT.
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
