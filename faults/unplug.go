package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// unplug disconnects a server from the network. Gates act on the bytes of existing connections; here packets are lost,
// so that the server's own calls hang or fail as well while it keeps running: a cable, a switch port, a security group.
// Leases of clients that cannot reach it expire, and a master still believes that it is master.
var unplugSpec = Spec{
	Name:      "unplug",
	OnlyRedis: "servers in network namespaces",
	Doc:       "disconnects a server from the network until healed: packets are lost, nothing is reset (docker, or root).",
	Affects:   history.AffectsTraffic,
	Source:    "jepsen nemesis partition-node (packets dropped, nothing reset); docker network disconnect",
	Class:     history.FaultCuts,
	Object:    "host",
	Verb:      "was cut off",
	Targets:   []Target{Master, Replica, Deciding, Node, Nodes, Minority, Majority},
	Down:      true,
	Requires:  cluster.Requirements{Network: true},
	Resources: func(c cluster.Cluster, target string) []Resource {
		return append(serverProcess(c, target), around(target, cluster.Both)...) // a restarted server would be connected
	},
	Lacks: lacks[cluster.Network]("disconnect a server from the network"),
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		n := env.Cluster.(cluster.Network)
		o := outage{down: n.Disconnect, up: n.Reconnect, effect: "disconnected", healed: "reconnected"}
		return o.inject(ctx, env.Cluster, target)
	},
}
