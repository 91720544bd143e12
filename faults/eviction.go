package faults

import (
	"context"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// eviction is a cache that is also the lock server: memory is full, and the policy allkeys-lru removes keys that have
// not expired, locks among them.
var evictionSpec = commandFault(evictLocks, Spec{
	Name:      "eviction",
	OnlyRedis: "a memory limit",
	Doc:       "makes a server evict its keys (maxmemory with allkeys-lru), once, as soon as it has a lock's key.",
	Source:    "redis.io, Key eviction: allkeys-lru; rueidislock's README: a deleted key is a lost lock",
	Class:     history.FaultRemoves,
	Object:    history.ObjectKeys,
	Verb:      "lost keys",
	Targets:   []Target{Master, Deciding, Node},
	Resources: ofEachNode(memoryLimit),
})

func evictLocks(ctx context.Context, a cluster.Admin, node string, keys []string) (string, bool, error) {
	for _, key := range keys { // one by one: in a Redis Cluster they may be in different slots
		if n, err := number(ctx, a, node, "EXISTS", key); err == nil && n > 0 {
			return evict(ctx, a, node)
		}
	}
	return "", false, nil
}

// evict limits the memory until keys were evicted.
func evict(ctx context.Context, a cluster.Admin, node string) (effect string, done bool, err error) {
	before, err := infoNumber(ctx, a, node, "stats", "evicted_keys:")
	if err != nil {
		return "", false, err
	}
	undo, err := limitMemory(ctx, a, node, "allkeys-lru")
	if err != nil {
		return "", false, err
	}
	now, err := infoNumber(ctx, a, node, "stats", "evicted_keys:")
	if _, err2 := a.Do(context.WithoutCancel(ctx), node, undo...); err == nil {
		err = err2
	}
	return format.Count(now-before, "key") + " evicted", now > before, err
}
