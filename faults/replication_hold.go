package faults

import (
	"context"
	"fmt"
	"sync"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// replication-hold keeps what the master writes from its replicas while
// clients and Sentinels still reach everybody: the moment of asynchronous
// replication that every failover has, made long enough to happen in each run.
// A stopped replica would not do: its kernel has the bytes already.
var replicationHoldSpec = Spec{
	Name:       "replication-hold",
	Doc:        "holds the replication stream from the master to all replicas, or to one (n2>n1); healing delivers it.",
	Source:     "redis.io, Distributed Locks: the master crashes before the write is transmitted to the replica",
	Targets:    []Target{Master, Servers},
	Topologies: []string{cluster.Replicated, cluster.Sentinel, cluster.Sharded},
	Resources:  replicationLinks,
	Lacks:      func(c cluster.Cluster) string { return can[cluster.Links](c, "hold a link") },
	Inject:     injectReplicationHold,
}

type heldReplication struct {
	links  cluster.Links
	master string
	held   []Resource
	once   sync.Once
	err    error
}

func injectReplicationHold(ctx context.Context, env Env, target string) (Injection, error) {
	h := &heldReplication{links: env.Cluster.(cluster.Links), master: target, held: replicationLinks(env.Cluster, target)}
	for _, g := range h.held {
		if err := h.links.SetRule(g.Link, g.Dir, cluster.Rule{Mode: cluster.Hold}); err != nil {
			_, _ = h.Heal(ctx) // half a hold is none: nobody would heal it
			return nil, fmt.Errorf("holding replication from %s to %s: %w", g.Link.To, g.Link.From, err)
		}
	}
	return h, nil
}

// replicationLinks is how what a master writes reaches its replicas, all of
// them or the one of a pair: they have dialled.
func replicationLinks(c cluster.Cluster, target string) (all []Resource) {
	replica, master, pair := cutPair(target)
	if pair {
		return []Resource{{Link: cluster.Link{From: replica, To: master}, Dir: cluster.Back}}
	}
	for i, n := range c.Nodes() {
		if t := c.Topology(); t.Kind == cluster.Sharded && fmt.Sprintf("n%d", t.MasterOf(i+1)) != target {
			continue // of another master, or one itself
		}
		if n.Name != target {
			all = append(all, Resource{Link: cluster.Link{From: n.Name, To: target}, Dir: cluster.Back})
		}
	}
	return all
}

// Bite waits until every replica misses something that the master has written.
func (h *heldReplication) Bite(ctx context.Context) (string, error) {
	return await(ctx, "a write held back from every replica", func() (string, bool) {
		var waiting int64
		for _, g := range h.held {
			t, err := h.links.Traffic(g.Link, g.Dir)
			if err != nil || t.Waiting == 0 {
				return "", false
			}
			waiting += t.Waiting
		}
		return fmt.Sprintf("%d bytes of %s's writes are held back from %d replicas",
			waiting, h.master, len(h.held)), waiting > 0
	})
}

func (h *heldReplication) Heal(context.Context) (string, error) {
	h.once.Do(func() {
		for _, g := range h.held {
			if err := h.links.SetRule(g.Link, g.Dir, cluster.Rule{}); err != nil && h.err == nil {
				h.err = fmt.Errorf("letting replication to %s pass: %w", g.Link.From, err)
			}
		}
	})
	return "replication flows again", h.err
}
