package faults

import (
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// silent-connections is a firewall that drops the connections of its target from its table: bytes sent on them are lost
// in both directions, nothing is reset, and new connections work. A client that reads without a timeout and sends no
// pings never notices. The connections stay silent when the fault is healed, but the checkers count the network as good
// from then on: the duration of the step is the time that a lock has to notice, see Least.
var silentConnectionsSpec = linkFault{
	rule:   always(cluster.Rule{Silent: true}),
	effect: counted(func(t cluster.Traffic) int64 { return t.Dropped }, "byte", "lost"),
	healed: "the connections stay silent",
}.spec(Spec{
	Name: "silent-connections",
	Doc: "silences the open connections of its target for the rest of the run, without a reset, while new ones work: a " +
		"lock must notice within the duration of the step (2s or more); after that the network counts as healthy.",
	Source: "redis.io, Clients, TCP keepalive (dead peers); redis/go-redis health checks of Pub/Sub (a ping every 3 s); " +
		"conntrack and NAT tables that forget idle connections",
	Class:     history.FaultDrops,
	Object:    history.ObjectConnections,
	Verb:      "lost its connections without a reset",
	Least:     &Least{2 * time.Second, "connections stay silent after it, and a lock that pings every 2s takes that long"},
	Targets:   []Target{Holder, Waiter, Client, Pair, All},
	Resources: allTraffic,
})
