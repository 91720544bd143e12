package sim

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// perKey is how many commands a sample takes for each key.
const perKey = 3

// Sample looks at a node: its role and who holds keys. A node that is down or
// stands still is a sample with Up false.
func (c *Cluster) Sample(ctx context.Context, node string, keys []string) history.Sample {
	sample := history.Sample{Node: node}
	n, err := c.node(node)
	if err != nil {
		return sample
	}
	c.act(ctx)
	defer c.world.mu.Unlock()
	if !n.up || n.paused || c.world.closed {
		return sample
	}
	commands := make([][]string, 0, perKey*len(keys))
	for _, key := range keys {
		// The wrong one of the two readers answers WRONGTYPE, as it does on real servers.
		commands = append(commands, []string{"HGETALL", key}, []string{"GET", key}, []string{"PTTL", key})
	}
	replies := n.harness.ask(commands...)
	n.done()
	sample.Up, sample.Offset = true, n.repl.offset
	if sample.Role = "master"; n.repl.master != "" {
		sample.Role = "slave"
	}
	for _, a := range n.repl.replicas {
		if a.online {
			sample.Links++
		}
	}
	for i, key := range keys {
		if perKey*(i+1) > len(replies) {
			break
		}
		if seen, ok := keySeen(replies[perKey*i:][:perKey]); ok {
			if sample.Keys == nil {
				sample.Keys = make(map[string]history.KeySeen, len(keys))
			}
			sample.Keys[key] = seen
		}
	}
	return sample
}

// Role is "master" or "slave", as the node itself says now.
func (c *Cluster) Role(ctx context.Context, node string) (string, error) {
	s := c.Sample(ctx, node, nil)
	if !s.Up {
		return "", fmt.Errorf("asking for the role of %s: %w", node, cluster.ErrDown)
	}
	return s.Role, nil
}

// keySeen reads the answers to HGETALL, GET and PTTL; false: the key is free.
func keySeen(replies []any) (history.KeySeen, bool) {
	ttl, _ := replies[2].(int64)
	if ttl == -2 { // no such key (redis.io, PTTL)
		return history.KeySeen{}, false
	}
	seen := history.KeySeen{TTL: time.Duration(ttl) * time.Millisecond}
	if value, ok := replies[1].(string); ok {
		seen.Owner = value
		return seen, true
	}
	if hash, ok := replies[0].([]any); ok {
		seen.Owner, seen.Count = holder(hash)
	}
	return seen, true // else a set, a list: held by somebody
}

// holder finds the owner in a lock that is a hash. Ours has the fields owner
// and count; others (Redisson, and many after it) have one field per holder, the
// hold count its value, and perhaps a field mode.
func holder(hash []any) (owner string, count int) {
	for i := 0; i+1 < len(hash); i += 2 {
		name, value := fmt.Sprint(hash[i]), fmt.Sprint(hash[i+1])
		switch name {
		case "owner":
			owner = value
		case "count":
			count, _ = strconv.Atoi(value)
		}
	}
	if owner != "" {
		return owner, count
	}
	for i := 0; i+1 < len(hash); i += 2 {
		if name := fmt.Sprint(hash[i]); name != "mode" {
			count, _ := strconv.Atoi(fmt.Sprint(hash[i+1]))
			return name, count
		}
	}
	return "", 0
}

// Keys lists the keys of a node with what is left of their time to live.
func (c *Cluster) Keys(ctx context.Context, node string) (map[string]time.Duration, error) {
	n, err := c.node(node)
	if err != nil {
		return nil, fmt.Errorf("listing the keys of %w", err)
	}
	c.act(ctx)
	defer c.world.mu.Unlock()
	if !n.up || n.paused || c.world.closed {
		return nil, fmt.Errorf("listing the keys of %s: %w", node, cluster.ErrDown)
	}
	keys := map[string]time.Duration{}
	for _, reply := range n.harness.ask([]string{"KEYS", "*"}) {
		names, _ := reply.([]any)
		for _, name := range names {
			key := fmt.Sprint(name)
			if left := n.harness.ask([]string{"PTTL", key}); len(left) == 1 {
				if ms, ok := left[0].(int64); ok && ms != -2 {
					keys[key] = time.Duration(ms) * time.Millisecond
				}
			}
		}
	}
	n.done()
	return keys, nil
}

// adminWait is how long a command of an operator waits for a server that
// stands still, or for what the command itself waits for.
const adminWait = time.Second

// Do carries out a command at a node or Sentinel as an operator does, past the gates.
func (c *Cluster) Do(ctx context.Context, node string, args ...any) (any, error) {
	n, err := c.node(node)
	if err != nil {
		return nil, fmt.Errorf("asking %w", err)
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("asking %s: no command was given", node)
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = fmt.Sprint(a)
	}
	c.act(ctx)
	defer c.world.mu.Unlock()
	if !n.up || c.world.closed {
		return nil, fmt.Errorf("asking %s: %w", node, cluster.ErrDown)
	}
	if n.paused {
		return nil, fmt.Errorf("asking %s: it stands still: %w", node, context.DeadlineExceeded)
	}
	own := newHarness(n) // a connection of its own: what it waits for keeps nobody else waiting
	replies := own.ask(words)
	n.done()
	if len(replies) == 0 {
		replies = own.await(adminWait)
	}
	if own.node.up && own.life == n.life {
		own.peer.Close()
	}
	if len(replies) == 0 {
		return nil, fmt.Errorf("asking %s: no answer to %s within %v: %w", node, words[0], adminWait,
			context.DeadlineExceeded)
	}
	if err, ok := replies[0].(replyError); ok {
		return nil, fmt.Errorf("asking %s: %w", node, err)
	}
	return replies[0], nil
}
