package faults

import (
	"context"
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// split-brain cuts the master off from its Sentinels and replicas only: it still serves its clients, while a replica is
// promoted and serves the others. Healing delivers the held traffic; Sentinel then demotes the old master, and its last
// writes are discarded.
var splitBrainSpec = twoMasters(hold().spec(Spec{
	Name:       "split-brain",
	Doc:        "cuts the master off from Sentinels and replicas, but not from its clients: two masters serve clients.",
	Affects:    history.AffectsTraffic + " " + history.AffectsData,
	Source:     "redis.io, Sentinel: example 2, a partitioned master that still accepts writes",
	Class:      history.FaultCuts,
	Object:     history.ObjectTraffic,
	Verb:       "was cut off from Sentinels and replicas",
	Targets:    []Target{Master},
	Topologies: []string{cluster.Sentinel},
	Resources:  serverSide,
}))

// serverSide is every link of a master except the links to its clients.
func serverSide(c cluster.Cluster, master string) (all []Resource) {
	for _, n := range c.Nodes() {
		if n.Name != master {
			all = append(all, between(n.Name, master)...)
		}
	}
	for i := range c.Topology().Sentinels {
		all = append(all, link(fmt.Sprintf("s%d", i+1), master, cluster.Both))
	}
	return all
}

// twoMasters replaces the effect that a fault of a master must show: two nodes report at the same time that they are
// master.
func twoMasters(s Spec) Spec {
	inject := s.Inject
	s.Inject = func(ctx context.Context, env Env, old string) (Injection, error) {
		in, err := inject(ctx, env, old)
		if err != nil {
			return nil, err
		}
		observe := awaitRole(env.Cluster, roleMaster, "a second master", func(masters []string) (string, bool) {
			others := slices.DeleteFunc(slices.Clone(masters), func(node string) bool { return node == old })
			if len(others) == 0 || len(others) == len(masters) {
				return "", false
			}
			return fmt.Sprintf("%s and %s are both master", old, others[len(others)-1]), true
		})
		return &injection{observe: observe, undo: in.Heal}, nil
	}
	return s
}
