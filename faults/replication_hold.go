package faults

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// replication-hold keeps the master's writes from its replicas: the window of asynchronous replication, long enough to
// be hit in every run. Stopping the replica would not do: its kernel has already received the bytes.
var replicationHoldSpec = linkFault{rule: hold().rule, effect: heldFromAll, healed: hold().healed}.spec(Spec{
	Name:       "replication-hold",
	Doc:        "holds the replication stream to all replicas, or to one (n2>n1); healing delivers it late.",
	Source:     "redis.io, Distributed Locks: the master crashes before the write is transmitted to the replica",
	Class:      history.FaultDelays,
	Object:     history.ObjectReplication,
	Verb:       "stopped replicating",
	Targets:    []Target{Master, Servers},
	Topologies: []string{cluster.Replicated, cluster.Sentinel, cluster.Sharded, cluster.Postgres},
	Resources:  replicationTo,
})

// heldFromAll shows once every replica misses something that the master has written.
func heldFromAll(since []cluster.Traffic) (string, bool) {
	var held int64
	for _, t := range since {
		if t.Waiting == 0 {
			return "", false
		}
		held += t.Waiting
	}
	return format.Count(held, "byte") + " held from " + format.Count(len(since), "replica"), held > 0
}
