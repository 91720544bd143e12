package faults

import "github.com/lockchaos/lockchaos/internal/cluster"

// wait-starved holds back what the replicas acknowledge: they have everything,
// and their master does not know. Whoever asks it to WAIT for them waits in vain.
var waitStarvedSpec = held.spec(Spec{
	Name:       "wait-starved",
	Doc:        "holds back the replicas' acknowledgements, so that WAIT answers 0 although they have the write.",
	Source:     "redis.io, WAIT; redisson#5256",
	Targets:    []Target{Master, Servers},
	Topologies: []string{cluster.Replicated, cluster.Sentinel},
	Resources: func(c cluster.Cluster, target string) []Resource {
		all := replicationLinks(c, target)
		for i := range all {
			all[i].Dir = cluster.Forward
		}
		return all
	},
})
