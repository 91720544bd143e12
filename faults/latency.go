package faults

import "time"

// latency delays traffic in both directions. Each link has its own delay, drawn from the seed.
var latencySpec = spread.spec(Spec{
	Name:   "latency",
	Doc:    "delays all traffic to and from its target by `amount` each way (±50%, drawn from the seed).",
	Source: "redis.io, Distributed Locks: a slow instance reduces the validity",
	Targets: []Target{All, Master, Holder, Waiter, Client, Replica, Deciding, Node, Nodes, Pair, Servers, Minority,
		Majority},
	Amount:    &Amount{"the delay of each direction", 100 * time.Millisecond, time.Millisecond, time.Minute},
	Resources: allTraffic,
})
