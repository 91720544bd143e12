package faults

import "github.com/lockchaos/lockchaos/history"

var clusterFailoverSpec = takeover(nil, Spec{
	Name:   "cluster-failover",
	Doc:    "makes a Redis Cluster replica take over with its master's consent and all of its data (CLUSTER FAILOVER).",
	Source: "redis.io, CLUSTER FAILOVER: without options",
	Class:  history.FaultPromotes,
	Object: "role",
	Verb:   "took over from its master",
})
