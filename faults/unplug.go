package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// unplug takes a server off the network that the servers stand on. What gates do
// is done to bytes of connections that exist; here packets are lost, so that the
// server's own calls hang or fail as well, and it goes on with what it has: a
// cable, a switch port, a security group. Leases of clients that it cannot hear
// run out, and a master goes on to believe that it is one.
var unplugSpec = Spec{
	Name:     "unplug",
	Doc:      "takes a server off the network, connections left hanging, until healed (docker, or root on process).",
	Source:   "jepsen nemesis partition-node (packets dropped, nothing reset); docker network disconnect",
	Targets:  []Target{Master, Replica, Deciding, Node, Nodes, Minority, Majority},
	Down:     true,
	Requires: cluster.Requirements{Network: true},
	Resources: func(c cluster.Cluster, target string) []Resource {
		return append(serverProcess(c, target), around(target, cluster.Both)...) // what was started without a cable has none
	},
	Lacks: func(c cluster.Cluster) string { return can[cluster.Network](c, "take a server off the network") },
	Inject: func(ctx context.Context, env Env, target string) (Injection, error) {
		n := env.Cluster.(cluster.Network)
		in, err := down(ctx, target, n.Disconnect, n.Reconnect)
		if err != nil {
			return nil, err
		}
		return unplugged{in.(*downed)}, nil
	},
}

// unplugged tells of servers without a cable, which run all the same.
type unplugged struct{ *downed }

// Bite has nothing to wait for: Disconnect returned when nothing reached the server.
func (u unplugged) Bite(context.Context) (string, error) { return u.all() + " off the network", nil }

func (u unplugged) Heal(ctx context.Context) (string, error) {
	_, err := u.downed.Heal(ctx)
	return u.all() + " on the network again", err
}
