package faults

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// takeOver is a row for one of the ways in which a cluster's replica becomes master.
func takeOver(name, mode, doc, source string) Spec {
	return Spec{
		Name: name, Doc: doc, Source: source,
		Targets:    []Target{Replica, Behind, Node},
		Topologies: []string{cluster.Sharded},
		OneShot:    true,
		Lacks:      unableToCommand,
		Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
			args := []any{"CLUSTER", "FAILOVER"}
			if mode != "" {
				args = append(args, mode)
			}
			if _, err := env.Cluster.(cluster.Admin).Do(ctx, target, args...); err != nil {
				return nil, fmt.Errorf("having %s take over: %w", target, err)
			}
			return &tookOver{cluster: env.Cluster, node: target}, nil
		},
	}
}

type tookOver struct {
	cluster cluster.Cluster
	node    string
}

// Bite waits until the node says itself that it is master.
func (o *tookOver) Bite(ctx context.Context) (string, error) {
	return await(ctx, o.node+" as master", func() (string, bool) {
		for _, s := range sampleAll(ctx, o.cluster) {
			if s.Node == o.node && s.Up && s.Role == "master" {
				return o.node + " is master", true
			}
		}
		return "", false
	})
}

// Heal has nothing to undo: the cluster is whole, with another master.
func (o *tookOver) Heal(context.Context) (string, error) { return "nothing to undo", nil }
