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
func (c *Cluster) Sample(ctx context.Context, name string, keys []string) history.Sample {
	sample := history.Sample{Node: name}
	if c.ensemble != nil {
		return c.ensemble.Sample(ctx, name, keys)
	}
	_ = c.withNode(ctx, "sampling", name, func(n *node) (err error) {
		for _, key := range keys {
			c.sampled[key] = true
		}
		sample.Received = n.received()
		if !n.Up || n.Stopped() || c.world.Closed || n.server.Busy() || n.server.Loading() {
			return nil
		}
		sample.Keys, err = n.harness.keyStates(keys)
		n.done()
		if err != nil {
			return err
		}
		sample.Up, sample.Offset, sample.Replicas = true, n.repl.offset, len(n.online())
		if sample.Role = "master"; n.repl.master != "" {
			sample.Role = "slave"
		}
		return nil
	})
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
func (c *Cluster) Keys(ctx context.Context, name string) (keys map[string]time.Duration, err error) {
	if c.ensemble != nil {
		return c.ensemble.LockNodes(ctx, name)
	}
	err = c.withNode(ctx, "listing the keys of", name, func(n *node) (err error) {
		if !n.Up || n.Stopped() || c.world.Closed || n.server.Loading() {
			return cluster.ErrDown
		}
		keys, err = cluster.KeyTTLs(func(commands ...[]string) ([]any, error) { return n.harness.ask(commands...), nil })
		n.done()
		return err
	})
	return keys, err
}

// adminWait is how long an operator's command waits for a paused server, or blocks.
const adminWait = time.Second

// adminTimeout is adminWait, or the rest of it until ctx ends.
func adminTimeout(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(adminWait, time.Until(end))
	}
	return adminWait
}

// Do executes a command at a node as an operator does, bypassing the gates.
func (c *Cluster) Do(ctx context.Context, name string, args ...any) (reply any, err error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("asking %s: no command was given", name)
	}
	words := cluster.Words(args)
	err = c.withNode(ctx, "asking", name, func(n *node) error {
		switch {
		case !n.Up || c.world.Closed:
			return cluster.ErrDown
		case n.Stopped():
			return fmt.Errorf("it is stopped: %w", context.DeadlineExceeded)
		}
		admin := newHarness(n) // a separate connection: a blocking command blocks no other
		replies := admin.ask(words)
		n.done()
		if len(replies) == 0 {
			replies = admin.await(adminTimeout(ctx))
		}
		if admin.node.Up && admin.life == n.Life {
			admin.peer.Close()
		}
		if len(replies) == 0 {
			return fmt.Errorf("no reply to %s within %v: %w", words[0], adminWait, context.DeadlineExceeded)
		}
		if err, ok := replies[0].(resp.Error); ok {
			return err
		}
		reply = replies[0]
		return nil
	})
	return reply, err
}
