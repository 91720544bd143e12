package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// jitter has packets take each its own time: up to the amount more, drawn from
// the seed. Order within a connection is kept, as TCP keeps it; what different
// connections carry changes places.
var jitterSpec = jittered.spec(Spec{
	Name:      "jitter",
	Doc:       "delays each packet to and from its target by a time of its own (up to the amount, drawn from the seed).",
	Source:    "redis.io, Distributed Locks: clients that ask at the same time split the votes",
	Targets:   latencySpec.Targets,
	Amount:    &Amount{"the most that a packet is delayed by", 100 * time.Millisecond, time.Millisecond, time.Minute},
	Resources: func(_ cluster.Cluster, target string) []Resource { return around(target, cluster.Both) },
})
