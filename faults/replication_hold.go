package faults

import (
	"context"
	"fmt"
	"sync"

	"github.com/lockchaos/lockchaos/cluster"
)

// replication-hold keeps what the master writes from its replicas while
// clients and Sentinels still reach everybody: the moment of asynchronous
// replication that every failover has, made long enough to happen in each run.
// A stopped replica would not do: its kernel has the bytes already.
var replicationHoldSpec = Spec{
	Name:    "replication-hold",
	Doc:     "holds the replication stream between the master and every replica; healing delivers it late.",
	Source:  "redis.io, Distributed Locks: the master crashes before the write is transmitted to the replica",
	Targets: []Target{Master},
	Needs:   cluster.Sentinel,
	Unable:  func(c cluster.Cluster) string { return can[cluster.Links](c, "hold a link") },
	Inject:  injectReplicationHold,
}

type heldReplication struct {
	links  cluster.Links
	master string
	held   []cluster.Link
	once   sync.Once
	err    error
}

func injectReplicationHold(ctx context.Context, env Env, target string) (Injection, error) {
	h := &heldReplication{links: env.Cluster.(cluster.Links), master: target}
	for _, n := range env.Cluster.Nodes() {
		if n.Name != target {
			h.held = append(h.held, cluster.Link{From: n.Name, To: target})
		}
	}
	for _, l := range h.held {
		if err := h.links.SetRule(l, cluster.Back, cluster.Rule{Mode: cluster.Hold}); err != nil {
			_, _ = h.Heal(ctx) // half a hold is none: nobody would heal it
			return nil, fmt.Errorf("holding replication from %s to %s: %w", l.To, l.From, err)
		}
	}
	return h, nil
}

// Bite waits until every replica misses something that the master has written.
func (h *heldReplication) Bite(ctx context.Context) (string, error) {
	return await(ctx, "a write held back from every replica", func() (string, bool) {
		var waiting int64
		for _, l := range h.held {
			t, err := h.links.Traffic(l, cluster.Back)
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
		for _, l := range h.held {
			if err := h.links.SetRule(l, cluster.Back, cluster.Rule{}); err != nil && h.err == nil {
				h.err = fmt.Errorf("letting replication to %s pass: %w", l.From, err)
			}
		}
	})
	return "replication flows again", h.err
}
