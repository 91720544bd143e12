package faults

// cluster-failover: the keys move with the slots; a write that the replica has not heard of is lost,
// except where the master waits for it.
var clusterFailoverSpec = takeOver("cluster-failover", "",
	"has a cluster's replica take over from its master, with its consent and all of its data (CLUSTER FAILOVER).",
	"redis.io, CLUSTER FAILOVER: without options")
