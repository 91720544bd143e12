package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/resp"
)

// Sample reads a node's role and the holders of keys. Of a node that is down or stopped, Up is false.
func (c *Cluster) Sample(ctx context.Context, node string, keys []string) history.Sample {
	sample := history.Sample{Node: node}
	if c.members != nil {
		return c.sampleMember(ctx, node, keys)
	}
	n, err := c.node(node)
	if err != nil {
		return sample
	}
	c.act(ctx)
	defer c.world.mu.Unlock()
	for _, key := range keys {
		c.sampled[key] = true
	}
	sample.Received = n.received()
	if !n.up || n.stopped() || c.world.closed || n.server.Busy() || n.server.Loading() {
		return sample
	}
	sample.Keys, err = n.harness.keyStates(keys)
	n.done()
	if err != nil {
		return sample
	}
	sample.Up, sample.Offset = true, n.repl.offset
	if sample.Role = "master"; n.repl.master != "" {
		sample.Role = "slave"
	}
	for _, a := range n.repl.replicas {
		if a.online {
			sample.Replicas++
		}
	}
	return sample
}

// Role is "master" or "slave", as ROLE of the node returns.
func (c *Cluster) Role(ctx context.Context, node string) (string, error) {
	s := c.Sample(ctx, node, nil)
	if !s.Up {
		return "", fmt.Errorf("asking for the role of %s: %w", node, cluster.ErrDown)
	}
	return s.Role, nil
}

// Keys lists the keys of a node with their TTLs.
func (c *Cluster) Keys(ctx context.Context, node string) (map[string]time.Duration, error) {
	if c.members != nil {
		return c.lockNodes(ctx, node)
	}
	n, err := c.node(node)
	if err != nil {
		return nil, fmt.Errorf("listing the keys of %w", err)
	}
	c.act(ctx)
	defer c.world.mu.Unlock()
	if !n.up || n.stopped() || c.world.closed || n.server.Loading() {
		return nil, fmt.Errorf("listing the keys of %s: %w", node, cluster.ErrDown)
	}
	keys, err := cluster.KeyTTLs(func(commands ...[]string) ([]any, error) { return n.harness.ask(commands...), nil })
	n.done()
	return keys, err
}

// adminWait is how long an operator's command waits for a paused server, or blocks.
const adminWait = time.Second

// adminTimeout is adminWait, or what ctx leaves of it.
func adminTimeout(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(adminWait, time.Until(end))
	}
	return adminWait
}

// Do executes a command at a node as an operator does, bypassing the gates.
func (c *Cluster) Do(ctx context.Context, node string, args ...any) (any, error) {
	n, err := c.node(node)
	if err != nil {
		return nil, fmt.Errorf("asking %w", err)
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("asking %s: no command was given", node)
	}
	words := cluster.Words(args)
	c.act(ctx)
	defer c.world.mu.Unlock()
	if !n.up || c.world.closed {
		return nil, fmt.Errorf("asking %s: %w", node, cluster.ErrDown)
	}
	if n.stopped() {
		return nil, fmt.Errorf("asking %s: it is stopped: %w", node, context.DeadlineExceeded)
	}
	admin := newHarness(n) // a separate connection: a blocking command blocks no other
	replies := admin.ask(words)
	n.done()
	if len(replies) == 0 {
		replies = admin.await(adminTimeout(ctx))
	}
	if admin.node.up && admin.life == n.life {
		admin.peer.Close()
	}
	if len(replies) == 0 {
		return nil, fmt.Errorf("asking %s: no reply to %s within %v: %w", node, words[0], adminWait,
			context.DeadlineExceeded)
	}
	if err, ok := replies[0].(resp.Error); ok {
		return nil, fmt.Errorf("asking %s: %w", node, err)
	}
	return replies[0], nil
}
