package process

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// sampleWait bounds a sample: whoever takes them does so many times a second. It
// is long enough that a healthy node on a busy machine is not taken for a dead one.
const sampleWait = 200 * time.Millisecond

// Sample looks at a node: its role and who holds keys, in one round trip past
// the gates. It takes at most 200 ms, also when the node stands still. A key
// whose type holds no owner that it could name has an empty one.
func (c *Cluster) Sample(ctx context.Context, node string, keys []string) history.Sample {
	sample := history.Sample{Node: node}
	s, err := c.server(node)
	if err != nil || s.Sentinel || !s.up() {
		return sample
	}
	ctx, cancel := context.WithTimeout(ctx, sampleWait)
	defer cancel()
	commands := slices.Concat([][]string{c.reader(), {"ROLE"}}, cluster.KeyCommands(keys))
	replies, err := s.admin.ask(ctx, commands...)
	if err != nil {
		return sample
	}
	role, err := parseRole(replies[1])
	if err != nil {
		return sample
	}
	sample.Up, sample.Role, sample.Offset, sample.Replicas = true, role.name, role.offset, role.links
	sample.Keys = cluster.KeysSeen(keys, replies[2:])
	return sample
}

// reader is the command to which a cluster's replica needs to have listened
// before it speaks of keys (redis.io, READONLY); others say something harmless.
func (c *Cluster) reader() []string {
	if c.topology.Kind == cluster.Sharded {
		return []string{"READONLY"}
	}
	return []string{"PING"}
}

// Role is "master" or "slave", as the node itself says now. It waits for
// nothing but the answer, for at most 200 ms.
func (c *Cluster) Role(ctx context.Context, node string) (string, error) {
	s, err := c.server(node)
	if err == nil && !s.up() {
		err = fmt.Errorf("%s: %w", node, cluster.ErrDown)
	}
	if err != nil {
		return "", fmt.Errorf("asking for the role of %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sampleWait)
	defer cancel()
	role, err := s.role(ctx)
	return role.name, err
}

// Keys lists the keys of a node with their remaining time to live. It blocks the
// server while it lists: for the end of a run.
func (c *Cluster) Keys(ctx context.Context, node string) (map[string]time.Duration, error) {
	s, err := c.server(node)
	if err != nil {
		return nil, fmt.Errorf("listing the keys of %w", err)
	}
	keys, err := cluster.KeyTTLs(func(commands ...[]string) ([]any, error) {
		replies, err := s.admin.ask(ctx, slices.Concat([][]string{c.reader()}, commands)...)
		if err != nil {
			return nil, err
		}
		return replies[1:], nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the keys of %s: %w", node, err)
	}
	return keys, nil
}
