package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// latency delays traffic in both directions. Each link has its own delay, drawn from the seed.
var latencySpec = slow(func(env Env, s Spec) cluster.Rule {
	return cluster.Rule{Delay: halfMoreOrLess(env, s.amount(env))}
}).spec(Spec{
	Name:   "latency",
	Delays: true,
	Doc:    "delays all traffic to and from its target by `amount` each way (±50%, drawn from the seed).",
	Source: "redis.io, Distributed Locks: a slow instance reduces the validity",
	Class:  history.FaultDelays,
	Object: history.ObjectTraffic,
	Verb:   "was slowed down",
	Targets: []Target{All, Master, Holder, Waiter, Client, Replica, Deciding, Node, Nodes, Pair, Servers, Minority,
		Majority},
	Amount:    &Amount{"the delay of each direction", 100 * time.Millisecond, time.Millisecond, time.Minute},
	Resources: allTraffic,
})

// halfMoreOrLess draws a delay between d/2 and 3d/2, so that links differ.
func halfMoreOrLess(env Env, d time.Duration) time.Duration {
	if env.Rand == nil || d < 2 {
		return d
	}
	return d/2 + time.Duration(env.Rand.Int64N(int64(d)))
}
