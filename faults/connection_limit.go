package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// connection-limit is a server that has as many connections as it may have: it keeps them, and closes each new one
// after an error. A client that has lost its connection cannot open another.
var connectionLimitSpec = adminFault{
	set: func(ctx context.Context, a cluster.Admin, node string, _ Env) (undoing, error) {
		restore, err := settings(ctx, a, node, "maxclients")
		if err != nil {
			return nil, err
		}
		_, err = a.Do(ctx, node, "CONFIG", "SET", "maxclients", "1")
		return undoneBy(a, node, restore...), err
	},
	count: func(ctx context.Context, a cluster.Admin, node string) (int, error) {
		return infoNumber(ctx, a, node, "stats", "rejected_connections:")
	},
	noun:   "refused connection",
	healed: "maxclients is what it was",
}.spec(Spec{
	Name:       "connection-limit",
	Doc:        "sets maxclients below a server's number of connections: it keeps these, but refuses new ones.",
	Affects:    history.AffectsTraffic,
	Source:     "redis.io, Redis client handling: maximum concurrent connected clients",
	Class:      history.FaultRefuses,
	Object:     history.ObjectConnections,
	Verb:       "refused connections",
	Topologies: []string{cluster.Single, cluster.Quorum},
	Resources:  ofEachNode("the connection limit of "),
})
