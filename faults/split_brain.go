package faults

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// split-brain cuts the master off from its Sentinels and replicas, and from
// nobody else: it goes on to serve the clients that it has, while a replica is
// promoted and serves the others. Healing delivers what was held back; Sentinel
// then makes a replica of the old master, and its last writes are thrown away.
var splitBrainSpec = Spec{
	Name:       "split-brain",
	Doc:        "cuts the master off from Sentinels and replicas, but not from its clients, so that there are two.",
	Source:     "redis.io, Sentinel: example 2, a partitioned master that still accepts writes",
	Targets:    []Target{Master},
	Topologies: []string{cluster.Sentinel},
	Resources:  backOfClients,
	Lacks:      func(c cluster.Cluster) string { return can[cluster.Links](c, "cut a link") },
	Inject:     injectSplitBrain,
}

// backOfClients is every link of a master but those of its clients.
func backOfClients(c cluster.Cluster, master string) (all []Resource) {
	for _, n := range c.Nodes() {
		if n.Name != master {
			all = append(all, between(n.Name, master)...)
		}
	}
	for i := range c.Topology().Sentinels {
		from := fmt.Sprintf("s%d", i+1)
		all = append(all, Resource{Link: cluster.Link{From: from, To: master}, Dir: cluster.Both})
	}
	return all
}

// splitBrain is held links with another proof: that there are two masters.
type splitBrain struct {
	Injection
	cluster cluster.Cluster
	old     string
}

func injectSplitBrain(ctx context.Context, env Env, target string) (Injection, error) {
	links := held.spec(Spec{Name: "split-brain", Resources: backOfClients})
	in, err := links.Inject(ctx, env, target)
	if err != nil {
		return nil, err
	}
	return &splitBrain{Injection: in, cluster: env.Cluster, old: target}, nil
}

// Bite waits until two nodes say at one time that they are master.
func (s *splitBrain) Bite(ctx context.Context) (string, error) {
	return await(ctx, "a second master", func() (string, bool) {
		other, still := "", false
		for _, n := range sampleAll(ctx, s.cluster) {
			if n.Up && n.Role == "master" {
				if n.Node == s.old {
					still = true
				} else {
					other = n.Node
				}
			}
		}
		return fmt.Sprintf("%s and %s are both master", s.old, other), still && other != ""
	})
}
