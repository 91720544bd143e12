package faults

import "github.com/lockchaos/lockchaos/internal/cluster"

// connection-reset ends the connections of its target once (RST): a firewall
// that forgets its state, a proxy that is restarted. Subscriptions go with them.
var connectionResetSpec = severed.spec(Spec{
	Name:      "connection-reset",
	Doc:       "resets every open connection of its target, once.",
	Source:    "redis/go-redis#2127 and many like it: a pool full of dead connections",
	Targets:   []Target{Holder, Waiter, Client, Master, Replica, Node, Pair, Servers, All},
	OneShot:   true,
	Resources: func(_ cluster.Cluster, target string) []Resource { return around(target, cluster.Both) },
})
