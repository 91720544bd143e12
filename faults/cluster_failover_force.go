package faults

import "github.com/lockchaos/lockchaos/history"

var clusterFailoverForceSpec = takeover([]any{"FORCE"}, Spec{
	Name:   "cluster-failover-force",
	Doc:    "makes a Redis Cluster replica take over by vote, without its master's consent (CLUSTER FAILOVER FORCE).",
	Source: "redis.io, CLUSTER FAILOVER: FORCE, when the master is down",
	Class:  history.FaultPromotes,
	Object: "role",
	Verb:   "took over from its master",
})
