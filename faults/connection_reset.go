package faults

// connection-reset resets the connections of its target once (RST): a firewall that loses its state, a proxy that is
// restarted. Subscriptions are lost with them.
var connectionResetSpec = cut.spec(Spec{
	Name:      "connection-reset",
	Doc:       "resets every open connection of its target, once.",
	Source:    "redis/go-redis#2127 and similar issues: a pool full of dead connections",
	Targets:   []Target{Holder, Waiter, Client, Master, Replica, Node, Pair, Servers, All},
	OneShot:   true,
	Resources: allTraffic,
})
