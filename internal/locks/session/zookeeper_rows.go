package session

import (
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/topology"
)

// ZooKeeperRows describe the locks on ZooKeeper. Package locks/zookeeper opens them: only programs that do so link its
// client. The lease of a request is the timeout of the session.
func ZooKeeperRows() []client.Spec {
	row := Kind{Topology: topology.ZooKeeper, Length: native.OptionSession}.Row
	return []client.Spec{
		row("zk-mutex", "package lock/zookeeper's mutex: each acquire creates an ephemeral sequential node and waits "+
			"for the node before its own; a hold ends with its session.", "ZooKeeper Recipes and Solutions, Locks",
			promise.Fenced),
		row("zk-readers-writer", "package lock/zookeeper's readers-writer lock: a reader waits for earlier writers, "+
			"a writer for everyone before it; requests without a mode write.",
			"ZooKeeper Recipes and Solutions, Shared Locks", promise.Fenced|promise.ReadWrite),
		row("zk-semaphore", "package lock/zookeeper's semaphore: a node for each request, granted when it and all "+
			"requests before it fit. It has one permit, unless the workload has more.",
			"Apache Curator, InterProcessSemaphoreV2, whose requests for several leases block each other",
			promise.Permits|promise.RefusesExcessPermits),
		row("zk-multi", "package lock/zookeeper's lock of several names, whose nodes one transaction creates and "+
			"removes; a request for one key takes two locks.",
			"Apache Curator, InterProcessMultiLock; ZooKeeper's multi (ZOOKEEPER-965)",
			promise.Fenced|promise.MultiKey),
		{
			Name: "go-zookeeper",
			Doc: "go-zookeeper's own Lock: a request that fails after its node was created leaves the node, and a lost " +
				"session is not reported.",
			Source:       "github.com/go-zookeeper/zk v1.0.4, lock.go",
			Topologies:   []string{topology.ZooKeeper},
			Can:          promise.Wakes | promise.Fair | promise.Watchdog | promise.KeepsGrants,
			CheckOptions: native.CheckNoOptions,
			Definite:     func(error) bool { return false },
			Code:         native.Code,
		},
	}
}
