package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// replication-lag makes replicas follow their master late: a failover loses the last `amount` of its writes.
var replicationLagSpec = delay().spec(Spec{
	Name:       "replication-lag",
	Doc:        "delays the replication stream to all replicas, or to one (n2>n1), by `amount`.",
	Source:     "redis.io, Replication: asynchronous by default",
	Class:      history.FaultDelays,
	Object:     history.ObjectReplication,
	Verb:       "replicated late",
	Targets:    []Target{Master, Servers},
	Topologies: []string{cluster.Replicated, cluster.Sentinel, cluster.Sharded, cluster.Postgres},
	Amount:     &Amount{"the delay of replication", 500 * time.Millisecond, time.Millisecond, time.Minute},
	Resources:  replicationTo,
})
