package faults

// cluster-takeover: the keys move with the slots; a write that the replica has not heard of is lost,
// except where the master waits for it.
var clusterTakeoverSpec = takeOver("cluster-takeover", "TAKEOVER",
	"has a cluster's replica take over without master and without votes (CLUSTER FAILOVER TAKEOVER).",
	"redis.io, CLUSTER FAILOVER: TAKEOVER, without consensus")
