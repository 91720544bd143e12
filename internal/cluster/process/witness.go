package process

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// sampleWait bounds a sample: whoever takes them does so many times a second. It
// is long enough that a healthy node on a busy machine is not taken for a dead one.
const sampleWait = 200 * time.Millisecond

// perKey is how many commands are sent for each key.
const perKey = 3

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
	commands := append(make([][]string, 0, 2+perKey*len(keys)), c.reader(), []string{"ROLE"})
	for _, key := range keys {
		// The wrong one of the two readers answers WRONGTYPE, which costs less than asking for the type first.
		commands = append(commands, []string{"HGETALL", key}, []string{"GET", key}, []string{"PTTL", key})
	}
	replies, err := s.admin.ask(ctx, commands...)
	if err != nil {
		return sample
	}
	role, err := parseRole(replies[1])
	if err != nil {
		return sample
	}
	replies = replies[2:]
	sample.Up, sample.Role, sample.Offset, sample.Links = true, role.name, role.offset, role.links
	for i, key := range keys {
		seen, ok := keySeen(replies[perKey*i:][:perKey])
		if !ok {
			continue
		}
		if sample.Keys == nil {
			sample.Keys = make(map[string]history.KeySeen, len(keys))
		}
		sample.Keys[key] = seen
	}
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

// keySeen reads the answers to HGETALL, GET and PTTL; false: the key is free.
func keySeen(replies []any) (history.KeySeen, bool) {
	ttl, ok := replies[2].(int64)
	if !ok || ttl == -2 { // another shard's, or no such key (redis.io, PTTL)
		return history.KeySeen{}, false
	}
	seen := history.KeySeen{TTL: time.Duration(ttl) * time.Millisecond}
	if value, ok := replies[1].(string); ok {
		seen.Owner = value
		return seen, true
	}
	hash, ok := replies[0].([]any)
	if !ok {
		return seen, true // a set, a list: held by somebody
	}
	seen.Owner, seen.Count = holder(hash)
	return seen, true
}

// holder finds the owner in a lock that is a hash. Ours has the fields owner
// and count; others (Redisson, and many after it) have one field per holder, the
// hold count its value, and perhaps a field mode.
func holder(hash []any) (owner string, count int) {
	f := fields(hash)
	if owner, ok := f["owner"]; ok {
		count, _ := strconv.Atoi(f["count"])
		return owner, count
	}
	for i := 0; i+1 < len(hash); i += 2 {
		name := fmt.Sprint(hash[i])
		if name == "mode" {
			continue
		}
		count, _ := strconv.Atoi(fmt.Sprint(hash[i+1]))
		return name, count
	}
	return "", 0
}

// Keys lists the keys of a node with what is left of their time to live. It
// blocks the server for as long as that takes: it is for the end of a run.
func (c *Cluster) Keys(ctx context.Context, node string) (map[string]time.Duration, error) {
	s, err := c.server(node)
	if err != nil {
		return nil, err
	}
	replies, err := s.admin.ask(ctx, []string{"KEYS", "*"})
	if err != nil {
		return nil, err
	}
	names, _ := replies[0].([]any)
	commands := [][]string{c.reader()}
	for _, name := range names {
		commands = append(commands, []string{"PTTL", fmt.Sprint(name)})
	}
	if replies, err = s.admin.ask(ctx, commands...); err != nil {
		return nil, err
	}
	keys := make(map[string]time.Duration, len(names))
	for i, name := range names {
		if ms, ok := replies[i+1].(int64); ok && ms != -2 { // -2: it has expired in between
			keys[fmt.Sprint(name)] = time.Duration(ms) * time.Millisecond
		}
	}
	return keys, nil
}
