package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// sampleWait bounds a sample, of which there are many per second. It is long enough
// that a healthy node on a busy machine does not count as dead.
const sampleWait = 200 * time.Millisecond

// Sample reads a node's role and who holds keys in one round trip, past the gates. It
// takes at most 200 ms, even if the node hangs.
func (c *Cluster) Sample(ctx context.Context, node string, keys []string) history.Sample {
	sample := history.Sample{Node: node}
	s, err := c.server(node)
	if err != nil || s.Sentinel || !s.responsive() {
		return sample
	}
	if c.topology.Kind != cluster.Command { // whose samples are made by a program of the user
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, sampleWait)
		defer cancel()
	}
	return c.software.sample(ctx, s, keys)
}

// sample reads roles and keys in one round trip.
func (r redisSoftware) sample(ctx context.Context, s *server, keys []string) history.Sample {
	ask := func(commands ...[]string) ([]any, error) { return s.admin.do(ctx, commands...) }
	return cluster.SampleNode(ask, r.topology.Kind, s.name, keys)
}

// Role is "master" or "slave", as the node itself reports. It takes at most 200 ms.
func (c *Cluster) Role(ctx context.Context, node string) (name string, err error) {
	err = c.with("reading the role of", node, func(s *server) error {
		if !s.responsive() {
			return cluster.ErrDown
		}
		ctx, cancel := context.WithTimeout(ctx, sampleWait)
		defer cancel()
		role, err := s.role(ctx)
		name = role.Name
		return err
	})
	return name, err
}

// Keys lists the keys of a node with their remaining time to live. It blocks the
// server while it lists, so it is only for the end of a run.
func (c *Cluster) Keys(ctx context.Context, node string) (keys map[string]time.Duration, err error) {
	err = c.with("listing the keys of", node, func(s *server) (err error) {
		keys, err = c.software.keys(ctx, s)
		return err
	})
	return keys, err
}

// DeleteHeld deletes the nodes or keys of the holders of a lock; see [cluster.Entries].
func (c *Cluster) DeleteHeld(ctx context.Context, node, lock string) (deleted int, err error) {
	err = c.withReader("deleting from", node, func(r entryReader) (err error) {
		deleted, err = r.DeleteHeld(ctx, lock)
		return err
	})
	return deleted, err
}

// SetWritable is described at [cluster.Entries].
func (c *Cluster) SetWritable(ctx context.Context, node, lock string, writable bool) (changed bool, err error) {
	err = c.withReader("changing the rights at", node, func(r entryReader) (err error) {
		changed, err = r.SetWritable(ctx, lock, writable)
		return err
	})
	return changed, err
}

func (c *Cluster) withReader(doing, node string, do func(entryReader) error) error {
	return c.with(doing, node, func(s *server) error {
		r, ok := s.reader.(entryReader)
		if !ok {
			return fmt.Errorf("these servers have no node or key for each holder: %w", errors.ErrUnsupported)
		}
		return do(r)
	})
}

// keys blocks the server while it lists them.
func (r redisSoftware) keys(ctx context.Context, s *server) (map[string]time.Duration, error) {
	ask := func(commands ...[]string) ([]any, error) { return s.admin.do(ctx, commands...) }
	return cluster.KeyTTLs(cluster.Reading(ask, r.topology.Kind))
}
