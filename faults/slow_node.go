package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// slow-node makes a server reply late, as when it swaps, saves a snapshot or executes KEYS *. Its replies stay in
// order, each after the same delay.
var slowNodeSpec = delay().spec(Spec{
	Name:    "slow-node",
	Doc:     "delays a server's replies by `amount` until healed.",
	Source:  "redis.io, Diagnosing latency issues; redis.io, Distributed Locks: a short timeout for each instance",
	Class:   history.FaultDelays,
	Object:  history.ObjectTraffic,
	Verb:    "was slowed down",
	Targets: []Target{Master, Replica, Deciding, Node, Nodes, Minority, Majority},
	Amount:  &Amount{"the delay of each reply", 500 * time.Millisecond, time.Millisecond, time.Minute},
	Resources: func(_ cluster.Cluster, target string) (all []Resource) {
		for _, node := range nodesOf(target) {
			all = append(all, link(cluster.Any, node, cluster.Back))
		}
		return all
	},
})
