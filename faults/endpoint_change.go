package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// endpoint-change is the failover of a managed service, whose clients know one DNS name or virtual IP: it promotes a
// replica and moves the name to it. New connections reach the new master, while open connections stay with the old one.
// With target master the old master first becomes a read-only replica. With target all it accepts writes until the
// fault is healed. With a client as target, whose resolver keeps the old address, the old master accepts writes too,
// but only that client reaches it: the connections of the other clients are reset. Healing completes the failover.
var endpointChangeSpec = Spec{
	Name: "endpoint-change",
	Doc: "moves the master's address to a promoted replica; open connections stay with the old master, which becomes a " +
		"read-only replica, or, with target all, a second master until healed; with a client as target (a stale " +
		"resolver), only that client still reaches the second master.",
	Source: "redisson#241 and #1845 (ElastiCache moves the DNS name of the primary, and half of the connections stay); " +
		"redisson#4983 (3 of 44 programs keep the old address); redis/go-redis#790 (READONLY on old connections)",
	Class:      history.FaultMoves,
	Object:     history.ObjectAddress,
	Verb:       "was affected when the master's address moved",
	Targets:    []Target{Master, All, Holder, Waiter, Client},
	Topologies: []string{cluster.Replicated},
	Resources: func(cluster.Cluster, string) []Resource {
		return []Resource{{Name: "the address of the master"}, {Name: "the role of n1"}}
	},
	Lacks:  lacks[cluster.Address]("move the address of the master"),
	Inject: changeEndpoint,
}

func changeEndpoint(ctx context.Context, env Env, target string) (Injection, error) {
	address := env.Cluster.(cluster.Address)
	how, user := cluster.Move{}, "a client"
	switch shape(target) {
	case All:
	case Client:
		how.Stale, user = target, target
	default:
		how.Demote = true
	}
	from, to, err := address.MoveAddress(ctx, how)
	if err != nil {
		return nil, err
	}
	before, err := bytesTo(env.Cluster, from, how.Stale)
	if err != nil {
		return nil, errors.Join(err, address.SettleAddress(ctx)) // the caller gets no Injection to heal
	}
	used := func(masters []string) (string, bool) {
		now, err := bytesTo(env.Cluster, from, how.Stale)
		if err != nil || now == before || !slices.Contains(masters, to) {
			return "", false
		}
		return fmt.Sprintf("%s is master instead of %s, which still replied to %s", to, from, user), true
	}
	return &injection{
		observe: awaitRole(env.Cluster, roleMaster, "the use of a connection to the old master", used),
		undo: func(ctx context.Context) (string, error) {
			return from + " is a replica of " + to, address.SettleAddress(ctx)
		},
	}, nil
}

// bytesTo returns how many bytes node has sent to a client; "": to all clients.
func bytesTo(c cluster.Cluster, node, client string) (int64, error) {
	links, add := c.(cluster.Links), int64(1)
	ends, sum := []string{cmp.Or(client, cluster.Any)}, int64(0)
	if client == "" {
		for _, n := range c.Nodes() { // Any includes the servers, which are not clients
			ends = append(ends, n.Name)
		}
	}
	for _, end := range ends {
		t, err := links.Traffic(cluster.Link{From: end, To: node}, cluster.Back)
		if err != nil {
			return 0, err
		}
		sum += add * t.Passed
		add = -1
	}
	return sum, nil
}
