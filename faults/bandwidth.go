package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// bandwidth makes the lines of its target narrow: what is sent while others are
// sending waits for its turn. Each pair of ends has a line of its own, which
// all of its connections share.
var bandwidthSpec = narrowed.spec(Spec{
	Name:      "bandwidth",
	Doc:       "makes the lines to and from its target narrow: a thousand bytes take the amount.",
	Source:    "Toxiproxy, bandwidth; redis.io, Distributed Locks: time spent on asking is taken off the validity",
	Targets:   latencySpec.Targets,
	Amount:    &Amount{"the time that a thousand bytes take", 100 * time.Millisecond, time.Millisecond, time.Minute},
	Resources: func(_ cluster.Cluster, target string) []Resource { return around(target, cluster.Both) },
})
