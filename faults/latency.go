package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// latency makes the network slow in both directions. Each link has a delay of
// its own, drawn from the seed: from a half less than the amount to a half more.
var latencySpec = delayed.spec(Spec{
	Name:   "latency",
	Doc:    "delays everything to and from its target (amount each way, a half less or more by the seed).",
	Source: "redis.io, Distributed Locks: an instance that is slow takes validity away",
	Targets: []Target{All, Master, Holder, Waiter, Client, Replica, Deciding, Node, Nodes, Pair, Servers, Minority,
		Majority},
	Amount:    &Amount{"the delay of each direction", 100 * time.Millisecond, time.Millisecond, time.Minute},
	Resources: func(_ cluster.Cluster, target string) []Resource { return around(target, cluster.Both) },
})
