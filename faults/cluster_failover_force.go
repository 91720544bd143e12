package faults

// cluster-failover-force: the keys move with the slots; a write that the replica has not heard of is lost,
// except where the master waits for it.
var clusterFailoverForceSpec = takeOver("cluster-failover-force", "FORCE",
	"has a cluster's replica take over without asking its master, by vote (CLUSTER FAILOVER FORCE).",
	"redis.io, CLUSTER FAILOVER: FORCE, when the master is down")
