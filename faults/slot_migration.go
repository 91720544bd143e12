package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/reshard"
)

// slot-migration moves the slots of the locks' keys to another master of a Redis Cluster, as redis-cli does to
// rebalance: while it lasts, a key that is not (yet) at the source is redirected with ASK, and a script gets TRYAGAIN
// if one of its keys is there and another is not. A lock whose release leaves a record in a second key meets both.
var slotMigrationSpec = Spec{
	Name:       "slot-migration",
	Doc:        "migrates the slots of the locks' keys to a Redis Cluster master; healing moves the keys and ends it.",
	Source:     "redis.io, Redis Cluster specification: live reconfiguration; TRYAGAIN for commands with several keys",
	Class:      history.FaultMoves,
	Object:     "slots",
	Verb:       "took over the slots of the locks",
	Affects:    history.AffectsData + " " + history.AffectsCommands + " " + history.AffectsSlots,
	Targets:    []Target{Master, Node},
	Topologies: []string{cluster.Sharded},
	Lacks:      lacksAdmin,
	Resources: func(cluster.Cluster, string) []Resource {
		return []Resource{{Name: "the slots of the locks"}}
	},
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		m, err := reshard.New(ctx, env.Cluster, target, env.Keys)
		if err != nil {
			return nil, err
		}
		redirects := func(ctx context.Context) (sum int, err error) {
			for _, node := range m.Nodes() {
				for _, code := range []string{"ASK", "TRYAGAIN"} {
					n, err := errorReplies(code)(ctx, env.Cluster.(cluster.Admin), node)
					if err != nil {
						return 0, err
					}
					sum += n
				}
			}
			return sum, nil
		}
		before, err := redirects(ctx)
		if err != nil {
			return nil, err
		}
		in := &injection{
			observe: awaitMore("any redirection of a client", "ASK or TRYAGAIN reply", before, redirects),
			undo:    m.Finish,
		}
		return in.started(ctx, m.Start(ctx))
	},
}
