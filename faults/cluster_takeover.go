package faults

var clusterTakeoverSpec = takeover([]any{"TAKEOVER"}, Spec{
	Name:   "cluster-takeover",
	Doc:    "makes a Redis Cluster replica take over without consent and without votes (CLUSTER FAILOVER TAKEOVER).",
	Source: "redis.io, CLUSTER FAILOVER: TAKEOVER, without consensus",
})
