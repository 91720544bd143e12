package session

import (
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/native"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/topology"
)

// EtcdRows describe the locks on etcd. Package locks/etcd opens them: only programs that do so link etcd's client.
func EtcdRows() []client.Spec {
	row := Kind{Topology: topology.Etcd, Length: native.OptionLease}.Row
	const recipe = "etcd, client/v3/concurrency"
	return []client.Spec{
		row("etcd-mutex", "package lock/etcd's mutex: each acquire creates a key with a lease and waits for the key before "+
			"its own; a hold ends with its lease.", recipe, promise.Fenced),
		row("etcd-readers-writer", "package lock/etcd's readers-writer lock: a reader waits for earlier writers, a "+
			"writer for everyone before it; requests without a mode write.", "etcd, client/v3/experimental/recipes, RWMutex",
			promise.Fenced|promise.ReadWrite),
		row("etcd-semaphore", "package lock/etcd's semaphore: a key for each request, granted when it and all requests "+
			"before it fit. It has one permit, unless the workload has more.", recipe,
			promise.Permits|promise.RefusesExcessPermits),
		row("etcd-multi", "package lock/etcd's lock of several names, whose keys one transaction creates and removes; a "+
			"request for one key takes two locks.", "etcd documentation, API guarantees, transactions",
			promise.Fenced|promise.MultiKey),
		{
			Name: "etcd",
			Doc: "etcd's own concurrency.Mutex: if the reply to Lock comes after its context has ended, the key stays until " +
				"the session ends; two owners in one session both hold the lock.",
			Source:     "go.etcd.io/etcd/client/v3 v3.7.3, concurrency/mutex.go",
			Topologies: []string{topology.Etcd},
			Can: promise.Try | promise.Watchdog | promise.ReportsLoss | promise.Wakes | promise.Fair |
				promise.Fenced | promise.KeepsGrants,
			CheckOptions: native.CheckNoOptions,
		},
	}
}
