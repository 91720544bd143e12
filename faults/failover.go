package faults

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// failover asks Sentinel to replace a healthy master, as an operator does for
// maintenance. It has bitten when another node says in its ROLE that it is
// master: Sentinel's announcement comes about a second later and clients'
// knowledge later still, which is part of what is tested.
var failoverSpec = Spec{
	Name:       "failover",
	Doc:        "has Sentinel (or, in topology replicated, an operator) promote a replica in place of the master.",
	Source:     "redis.io, Sentinel: SENTINEL FAILOVER",
	Targets:    []Target{Master},
	Topologies: []string{cluster.Sentinel, cluster.Replicated},
	OneShot:    true,
	Lacks:      func(c cluster.Cluster) string { return can[cluster.Promoter](c, "promote a replica") },
	Inject:     injectFailover,
}

type failedOver struct {
	cluster cluster.Cluster
	old     string
}

func injectFailover(ctx context.Context, env Env, target string) (Injection, error) {
	if err := env.Cluster.(cluster.Promoter).Promote(ctx); err != nil {
		return nil, fmt.Errorf("asking for a failover: %w", err)
	}
	return &failedOver{cluster: env.Cluster, old: target}, nil
}

func (f *failedOver) Bite(ctx context.Context) (string, error) {
	return await(ctx, "a promoted replica", func() (string, bool) {
		for _, s := range sampleAll(ctx, f.cluster) {
			if s.Up && s.Role == "master" && s.Node != f.old {
				return fmt.Sprintf("%s is master in place of %s", s.Node, f.old), true
			}
		}
		return "", false
	})
}

// Heal has nothing to undo: the cluster is whole, with another master.
func (f *failedOver) Heal(context.Context) (string, error) { return "nothing to undo", nil }
