package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// flushall empties a server: a command meant for the test system. Holders, tokens and queues are lost; clients and
// subscriptions stay connected.
var flushallSpec = commandFault(flushAll, Spec{
	Name:      "flushall",
	OnlyRedis: "keys",
	Doc:       "removes every key of a server (FLUSHALL), once, as soon as it has any.",
	Source:    "redis.io, FLUSHALL: deletes all keys of all databases",
	Class:     history.FaultRemoves,
	Object:    history.ObjectKeys,
	Verb:      "lost keys",
	Targets:   []Target{Master, Deciding, Node},
	Affects:   history.AffectsData + " " + history.AffectsMessages, // nobody announces that a lock is free
})

func flushAll(ctx context.Context, a cluster.Admin, node string, _ []string) (string, bool, error) {
	n, err := number(ctx, a, node, "DBSIZE")
	if err != nil || n == 0 {
		return "", false, err
	}
	_, err = a.Do(ctx, node, "FLUSHALL")
	return format.Count(n, "key") + " removed", err == nil, err
}
