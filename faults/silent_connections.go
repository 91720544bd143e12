package faults

import "github.com/lockchaos/lockchaos/internal/cluster"

// silent-connections is a firewall that drops the connections of its target from its table: what is sent on them is
// lost in both directions, nothing is reset, and new connections work. Who reads without a timeout or a ping never
// notices. The connections stay silent when the fault is healed: it lasts for as long as a lock may take to notice.
var silentConnectionsSpec = linkFault{
	rule:   always(cluster.Rule{Silent: true}),
	effect: counted(func(t cluster.Traffic) int64 { return t.Dropped }, "byte", "lost"),
	healed: "the connections stay silent",
}.spec(Spec{
	Name: "silent-connections",
	Doc: "makes the open connections of its target carry nothing any more, for good and without a reset; new ones work, " +
		"and it lasts for as long as a lock may take to notice.",
	Source: "redis.io, Clients, TCP keepalive (dead peers); redis/go-redis health checks of Pub/Sub (a ping every 3 s); " +
		"conntrack and NAT tables that forget idle connections",
	Targets:   []Target{Holder, Waiter, Client, Pair, All},
	Resources: allTraffic,
})
