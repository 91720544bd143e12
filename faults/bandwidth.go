package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// bandwidth limits throughput: bytes queue behind earlier ones. The connections of one pair of ends share the limit.
var bandwidthSpec = slow(func(env Env, s Spec) cluster.Rule {
	return cluster.Rule{Rate: max(1, int64(1000*time.Second/s.amount(env)))}
}).spec(Spec{
	Name:      "bandwidth",
	Doc:       "limits throughput to and from its target: 1,000 bytes take `amount`.",
	Source:    "Toxiproxy, bandwidth; redis.io, Distributed Locks: time spent acquiring is subtracted from the validity",
	Class:     history.FaultDelays,
	Object:    history.ObjectTraffic,
	Verb:      "was slowed down",
	Targets:   latencySpec.Targets,
	Amount:    &Amount{"the time that 1,000 bytes take", 100 * time.Millisecond, time.Millisecond, time.Minute},
	Resources: allTraffic,
})
