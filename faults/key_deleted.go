package faults

import (
	"context"
	"errors"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/format"
)

// key-deleted removes the keys of the locks under their holders: an operator who wants to help, an eviction when memory
// is full.
var keyDeletedSpec = commandFault(deleteKeys, Spec{
	Name:      "key-deleted",
	OnlyRedis: "keys",
	Doc:       "deletes the locks' keys on a server (DEL), once, as soon as one exists.",
	Source:    "rueidislock's README: a deleted key is a lost lock; maxmemory with an allkeys policy evicts locks",
	Class:     history.FaultRemoves,
	Object:    history.ObjectKeys,
	Verb:      "lost keys",
	Targets:   []Target{Master, Deciding, Node},
	Affects:   history.AffectsData + " " + history.AffectsMessages, // nobody announces that the lock is free
})

func deleteKeys(ctx context.Context, a cluster.Admin, node string, keys []string) (string, bool, error) {
	var deleted int64
	var refused error
	for _, key := range keys { // one by one: a node of a Redis Cluster refuses keys that another node has
		n, err := number(ctx, a, node, "DEL", key)
		deleted, refused = deleted+n, errors.Join(refused, err)
	}
	if deleted == 0 {
		return "", false, refused
	}
	return format.Count(deleted, "key") + " deleted", true, nil
}
