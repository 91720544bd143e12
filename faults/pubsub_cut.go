package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// pubsub-cut disconnects every subscriber of a server, once. A message that is published before a subscriber is back is
// lost to it: pub/sub stores nothing.
var pubsubCutSpec = commandFault(disconnectSubscribers, Spec{
	Name:      "pubsub-cut",
	OnlyRedis: "published messages",
	Doc:       "disconnects every subscriber of a server (CLIENT KILL TYPE pubsub), once.",
	Affects:   history.AffectsMessages + " " + history.AffectsSubscriptions,
	Source:    "redisson#4744, redisson#3287: waiters that are never woken",
	Class:     history.FaultCuts,
	Object:    history.ObjectSubscriptions,
	Verb:      "disconnected its subscribers",
	Targets:   []Target{Master, Replica, Node},
})

func disconnectSubscribers(ctx context.Context, a cluster.Admin, node string, _ []string) (string, bool, error) {
	n, err := number(ctx, a, node, "CLIENT", "KILL", "TYPE", "pubsub")
	return format.Count(n, "subscriber") + " disconnected", n > 0, err
}
