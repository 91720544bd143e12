package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// replication-lag has replicas follow their master late: what a failover loses
// is the last amount of its writes.
var replicationLagSpec = exact(delayed).spec(Spec{
	Name:       "replication-lag",
	Doc:        "delays the replication stream from the master to its replicas, or to one (n2>n1), by the amount.",
	Source:     "redis.io, Replication: asynchronous by default",
	Targets:    []Target{Master, Servers},
	Topologies: []string{cluster.Replicated, cluster.Sentinel, cluster.Sharded},
	Amount:     &Amount{"how late the replicas are", 500 * time.Millisecond, time.Millisecond, time.Minute},
	Resources:  replicationLinks,
})
