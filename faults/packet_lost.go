package faults

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// packet-lost resets connections in the middle of requests, again and again: a request that was lost was not executed,
// one whose reply was lost was, and the client cannot know which.
var packetLostSpec = linkFault{
	rule: func(env Env, _ Spec) cluster.Rule {
		return seeded(env, cluster.Rule{Reset: true, OneIn: oneIn})
	},
	effect: counted(func(t cluster.Traffic) int64 { return t.Resets }, "connection", "reset"),
	healed: "packets are no longer lost",
}.spec(Spec{
	Name:      "packet-lost",
	Doc:       "resets a connection to or from its target instead of delivering a packet; one in five, from the seed.",
	Source:    "redisson#7367, redisson#4871: a request is sent again, and it is not known whether it was executed",
	Class:     history.FaultDrops,
	Object:    history.ObjectPackets,
	Verb:      "had its connections reset",
	Targets:   latencySpec.Targets,
	Resources: allTraffic,
})
