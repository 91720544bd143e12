package faults

import (
	"context"
	"fmt"
	"slices"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// queue-deleted deletes a part of a fair lock's state: the list of waiters. The other keys of the lock, which may name
// the same waiters, stay.
var queueDeletedSpec = commandFault(forFirst(deleteQueue), Spec{
	Name:      "queue-deleted",
	OnlyRedis: "keys",
	Doc: "deletes the list in which a fair lock keeps its waiters (a list with the lock's name in its own), but none of " +
		"the lock's other keys, once, as soon as it has two entries.",
	Source:  "redisson#5989: one of the two keys of a fair lock's queue was lost; redis.io, Key eviction",
	Class:   history.FaultRemoves,
	Object:  "queues",
	Verb:    "lost a wait queue",
	Targets: []Target{Master, Deciding, Node},
	Affects: history.AffectsData + " " + history.AffectsMessages, // no waiter is woken until it is in the queue again
})

// forFirst is the command that has an effect on the first lock for which it can.
func forFirst(do func(ctx context.Context, a cluster.Admin, node, key string) (effect string, err error)) breaking {
	return func(ctx context.Context, a cluster.Admin, node string, keys []string) (string, bool, error) {
		for _, key := range keys {
			if effect, err := do(ctx, a, node, key); effect != "" || err != nil {
				return effect, effect != "", err
			}
		}
		return "", false, nil
	}
}

// deleteQueue deletes the queue of a lock if two clients wait in it. "": they do not.
func deleteQueue(ctx context.Context, a cluster.Admin, node, key string) (effect string, err error) {
	name, waiting, err := waitQueue(ctx, a, node, key, 2)
	if err != nil || name == "" {
		return "", err
	}
	if _, err := number(ctx, a, node, "DEL", name); err != nil {
		return "", err
	}
	return fmt.Sprintf("%v deleted with %s", name, format.Count(waiting, "waiter")), nil
}

// waitQueue is the list in which a fair lock keeps its waiters, and how many wait; "" if fewer than least do.
func waitQueue(ctx context.Context, a cluster.Admin, node, key string, least int64) (string, int64, error) {
	names, err := keysNamedAfter(ctx, a, node, key, "list")
	for _, name := range names {
		if waiting, err := number(ctx, a, node, "LLEN", name); err == nil && waiting >= least {
			return name, waiting, nil
		}
	}
	return "", 0, err
}

// keysNamedAfter are the keys of a type that have the name of a lock in theirs, except the key of the lock itself.
func keysNamedAfter(ctx context.Context, a cluster.Admin, node, key, kind string) ([]string, error) {
	do := func(command ...string) (any, error) {
		words := make([]any, len(command))
		for i, word := range command {
			words[i] = word
		}
		return a.Do(ctx, node, words...)
	}
	names, err := cluster.ScanKeys(do, "*"+key+"*", "TYPE", kind)
	return slices.DeleteFunc(names, func(name string) bool { return name == key }), err
}
