package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/gate"
)

// Kill ends a node, or a Sentinel ("s1"), with SIGKILL.
func (c *Cluster) Kill(_ context.Context, node string) error {
	return c.with("killing", node, (*server).kill)
}

// Restart starts a killed node or Sentinel at the same address with the same disk.
func (c *Cluster) Restart(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	return c.with("starting", node, func(s *server) error { return s.start(ctx) })
}

// Pause stops a node or Sentinel with SIGSTOP. The error wraps
// [cluster.ErrDown] if it is not running.
func (c *Cluster) Pause(_ context.Context, node string) error {
	return c.with("pausing", node, (*server).pause)
}

// Resume continues a paused node or Sentinel with SIGCONT.
func (c *Cluster) Resume(_ context.Context, node string) error {
	return c.with("resuming", node, (*server).resume)
}

// Each calls do for all nodes concurrently.
func (c *Cluster) Each(nodes []string, do func(node string) error) []error {
	return concurrently(nodes, do)
}

// concurrently calls do for all items at once; the errors have their order.
func concurrently[T any](items []T, do func(T) error) []error {
	errs := make([]error, len(items))
	var all sync.WaitGroup
	for i, item := range items {
		all.Go(func() { errs[i] = do(item) })
	}
	all.Wait()
	return errs
}

// with calls do for a node or Sentinel; its error names the action and the server.
func (c *Cluster) with(doing, node string, do func(*server) error) error {
	s, err := c.server(node)
	if err == nil {
		err = do(s)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", doing, node, err)
	}
	return nil
}

// Promote requests a failover from each Sentinel in turn until one accepts. Without Sentinels it acts as an
// operator: see promoteByHand.
func (c *Cluster) Promote(ctx context.Context) error {
	switch c.topology.Kind {
	case cluster.Sentinel:
	case cluster.Replicated, cluster.Postgres:
		return c.promoteByHand(ctx)
	default:
		return fmt.Errorf("promoting a replica in topology %s: %w", c.topology.Kind, errors.ErrUnsupported)
	}
	var errs []error
	for _, s := range c.sentinels {
		if !s.responsive() {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, cluster.ErrDown))
			continue
		}
		replies, err := s.admin.do(ctx, []string{"SENTINEL", "FAILOVER", masterName})
		if err == nil && replies[0] == "OK" {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("%s: %v", s.name, replies[0])
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("requesting a failover: %w", errors.Join(errs...))
}

// SetRule sets the gates of every matching link. From may be any client, node or Sentinel, even before it has
// connected, or [cluster.UnknownClient].
func (c *Cluster) SetRule(link cluster.Link, dir cluster.Direction, rule cluster.Rule) error {
	gates, err := c.gates(link)
	if err != nil {
		return fmt.Errorf("setting a rule for %s to %s: %w", link.From, link.To, err)
	}
	for _, g := range gates {
		g.SetRule(link.From, dir, rule)
	}
	return nil
}

// Traffic is the sum over the gates of every matching link.
func (c *Cluster) Traffic(link cluster.Link, dir cluster.Direction) (cluster.Traffic, error) {
	gates, err := c.gates(link)
	if err != nil {
		return cluster.Traffic{}, fmt.Errorf("counting traffic from %s to %s: %w", link.From, link.To, err)
	}
	var sum cluster.Traffic
	for _, g := range gates {
		sum.Add(g.Traffic(link.From, dir))
	}
	return sum, nil
}

// gates are the gates in front of link.To.
func (c *Cluster) gates(link cluster.Link) ([]*gate.Gate, error) {
	if err := c.checkEnd(link.From); err != nil {
		return nil, err
	}
	servers := slices.Concat(c.nodes, c.sentinels)
	if link.To != cluster.Any {
		s, err := c.server(link.To)
		if err != nil {
			return nil, err
		}
		servers = []*server{s}
	}
	var all []*gate.Gate
	for _, s := range servers {
		all = append(all, s.gates()...)
	}
	return all, nil
}
