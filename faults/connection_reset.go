package faults

import (
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// connection-reset resets the connections of its target once (RST): a firewall that loses its state, a proxy that is
// restarted. Subscriptions are lost with them.
var connectionResetSpec = linkFault{
	rule:   always(cluster.Rule{Mode: cluster.Cut}),
	effect: counted(func(t cluster.Traffic) int64 { return t.Resets }, "connection", "reset"),
	healed: "new connections are accepted",
}.spec(Spec{
	Name:      "connection-reset",
	Doc:       "resets every open connection of its target, once.",
	Source:    "redis/go-redis#2127 and similar issues: a pool full of dead connections",
	Class:     history.FaultDrops,
	Object:    history.ObjectConnections,
	Verb:      "had its connections reset",
	Targets:   []Target{Holder, Waiter, Client, Master, Replica, Node, Pair, Servers, All},
	OneShot:   true,
	Resources: allTraffic,
})
