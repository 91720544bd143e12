package faults

import "github.com/lockchaos/lockchaos/history"

var clusterTakeoverSpec = takeover([]any{"TAKEOVER"}, Spec{
	Name:   "cluster-takeover",
	Doc:    "makes a Redis Cluster replica take over without consent and without votes (CLUSTER FAILOVER TAKEOVER).",
	Source: "redis.io, CLUSTER FAILOVER: TAKEOVER, without consensus",
	Class:  history.FaultPromotes,
	Object: "role",
	Verb:   "took over from its master",
})
