package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// slow-node has a server answer late: one that swaps, that saves, that works on
// somebody's KEYS *. Its answers come in order, each after the same delay.
var slowNodeSpec = exact(delayed).spec(Spec{
	Name:    "slow-node",
	Doc:     "has a server's answers come late (amount) until healed.",
	Source:  "redis.io, Diagnosing latency issues; redlock: talk to a slow instance for a short time only",
	Targets: []Target{Master, Replica, Deciding, Node, Nodes, Minority, Majority},
	Amount:  &Amount{"the delay of every answer", 500 * time.Millisecond, time.Millisecond, time.Minute},
	Resources: func(_ cluster.Cluster, target string) (all []Resource) {
		for _, node := range names(target) {
			all = append(all, Resource{Link: cluster.Link{From: cluster.Any, To: node}, Dir: cluster.Back})
		}
		return all
	},
})
