package faults

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// wait-starved holds the replicas' acknowledgements: they have every write, their master does not know, and WAIT times
// out.
var waitStarvedSpec = hold().spec(Spec{
	Name:       "wait-starved",
	Doc:        "holds the replicas' acknowledgements, so WAIT returns 0 although they have the write.",
	Source:     "redis.io, WAIT; redisson#5256",
	Class:      history.FaultDelays,
	Object:     history.ObjectAcknowledgements,
	Verb:       "got no acknowledgements from its replicas",
	Targets:    []Target{Master, Servers},
	Topologies: []string{cluster.Replicated, cluster.Sentinel},
	Resources: func(c cluster.Cluster, target string) []Resource {
		all := replicationTo(c, target)
		for i := range all {
			all[i].Dir = cluster.Forward
		}
		return all
	},
})
