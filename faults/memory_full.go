package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// memory-full is a server that is full of other data: it refuses every command that may need memory, and every script
// whose first write does. Reading, deleting and expiry continue.
var memoryFullSpec = adminFault{
	set: func(ctx context.Context, a cluster.Admin, node string, _ Env) (undoing, error) {
		undo, err := limitMemory(ctx, a, node, "noeviction")
		if err != nil {
			return nil, err
		}
		return undoneBy(a, node, undo...), nil
	},
	count:  errorReplies("OOM"),
	noun:   "OOM reply",
	healed: "maxmemory is what it was",
}.spec(Spec{
	Name:      "memory-full",
	OnlyRedis: "a memory limit",
	Doc:       "sets maxmemory below the used memory, without eviction: a server replies OOM to writes until healed.",
	Affects:   history.AffectsCommands + " " + history.AffectsMemory,
	Source:    "redis.io, Key eviction: noeviction",
	Class:     history.FaultRefuses,
	Object:    "writes",
	Verb:      "had no memory left for writes",
	Resources: ofEachNode(memoryLimit),
})

// memoryLimit names the resource of faults that limit a server's memory.
const memoryLimit = "the memory limit of "

// limitMemory sets maxmemory to one byte, and returns the command that restores limit and policy.
func limitMemory(ctx context.Context, a cluster.Admin, node, policy string) (undo []any, err error) {
	if undo, err = settings(ctx, a, node, "maxmemory", "maxmemory-policy"); err != nil {
		return nil, err
	}
	_, err = a.Do(ctx, node, "CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", policy)
	return undo, err
}
