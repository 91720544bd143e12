package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

var (
	_ cluster.Killer    = (*Cluster)(nil)
	_ cluster.Pauser    = (*Cluster)(nil)
	_ cluster.Promoter  = (*Cluster)(nil)
	_ cluster.Address   = (*Cluster)(nil)
	_ cluster.Witness   = (*Cluster)(nil)
	_ cluster.Inventory = (*Cluster)(nil)
	_ cluster.Entries   = (*Cluster)(nil)
	_ cluster.Links     = (*Cluster)(nil)
	_ cluster.Clocks    = (*Cluster)(nil)
	_ cluster.Disks     = (*Cluster)(nil)
	_ cluster.SlowDisks = (*Cluster)(nil)
	_ cluster.Admin     = (*Cluster)(nil)
)

// act locks the world at the next instant of the actor in ctx, for what that
// actor does to the cluster. The caller unlocks.
func (c *Cluster) act(ctx context.Context) {
	a := ActorOf(ctx)
	if a == nil {
		a = c.Actor("unnamed")
	}
	a.Turn()
	c.world.mu.Lock()
}

// host finds a node or Sentinel by name.
func (c *Cluster) host(name string) (*host, error) {
	for _, h := range c.ordered() {
		if h.name == name {
			return h, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, cluster.ErrNoNode)
}

// node finds a Redis server by name.
func (c *Cluster) node(name string) (*node, error) {
	for _, n := range c.nodes {
		if n.name == name {
			return n, nil
		}
	}
	if _, err := c.host(name); err == nil {
		return nil, fmt.Errorf("%s: %w: it is not a Redis server", name, errors.ErrUnsupported)
	}
	return nil, fmt.Errorf("%s: %w", name, cluster.ErrNoNode)
}

// disk is the disk of a server.
func (c *Cluster) disk(name string) (*host, durable, error) {
	h, err := c.host(name)
	if err != nil {
		return nil, nil, err
	}
	switch p := h.program.(type) {
	case *node:
		return h, &p.disk, nil
	case *member:
		return h, &p.disk, nil
	}
	return nil, nil, fmt.Errorf("%s: %w", name, cluster.ErrNoNode)
}

// durable is what a disk keeps.
type durable interface {
	powerOff(now int64) // drops what is not durable
	wipe()
}

// Kill ends a node, or a Sentinel ("s1"), as SIGKILL does: what it wrote to its append-only file survives, fsynced
// or not.
func (c *Cluster) Kill(ctx context.Context, node string) error {
	h, err := c.host(node)
	if err != nil {
		return fmt.Errorf("killing %w", err)
	}
	c.act(ctx)
	defer c.world.mu.Unlock()
	h.kill()
	return nil
}

// Restart starts a killed node or Sentinel at the same address with the same disk.
func (c *Cluster) Restart(ctx context.Context, node string) error {
	h, err := c.host(node)
	if err != nil {
		return fmt.Errorf("restarting %w", err)
	}
	c.act(ctx)
	defer c.world.mu.Unlock()
	if h.up {
		return fmt.Errorf("starting %s: it is already running", node)
	}
	h.start()
	return nil
}

// Pause stops a node or Sentinel as SIGSTOP does. The error wraps
// [cluster.ErrDown] if it does not run.
func (c *Cluster) Pause(ctx context.Context, node string) error {
	return c.signal(ctx, "pausing", node, (*host).pause)
}

// Resume resumes a paused node or Sentinel, as SIGCONT does.
func (c *Cluster) Resume(ctx context.Context, node string) error {
	return c.signal(ctx, "resuming", node, (*host).resume)
}

func (c *Cluster) signal(ctx context.Context, doing, node string, do func(*host)) error {
	h, err := c.host(node)
	if err != nil {
		return fmt.Errorf("%s %w", doing, err)
	}
	c.act(ctx)
	defer c.world.mu.Unlock()
	if !h.up {
		return fmt.Errorf("%s %s: %w", doing, node, cluster.ErrDown)
	}
	do(h)
	return nil
}

// Promote sends SENTINEL FAILOVER to one Sentinel after another until one accepts. In a replicated topology it
// promotes a replica as an operator does: see promoteByHand.
func (c *Cluster) Promote(ctx context.Context) error {
	switch c.topology.Kind {
	case cluster.Sentinel:
	case cluster.Replicated:
		return c.promoteByHand(ctx)
	default:
		return fmt.Errorf("promoting a replica in topology %s: %w", c.topology.Kind, errors.ErrUnsupported)
	}
	c.act(ctx)
	defer c.world.mu.Unlock()
	var errs []error
	for _, s := range c.sentinels {
		err := cluster.ErrDown
		if s.up && !s.paused {
			if err = s.forceFailover(); err == nil {
				s.done()
				return nil
			}
		}
		errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
	}
	return fmt.Errorf("requesting a failover: %w", errors.Join(errs...))
}

// SetRule sets the gates of every link that matches. From may be any client, node or Sentinel, including one that
// has not connected yet. The caller is at an instant of its slot, see [Actor.Turn].
func (c *Cluster) SetRule(link cluster.Link, dir cluster.Direction, rule cluster.Rule) error {
	return c.each(link, "setting a rule for", func(h *host) {
		for d := range 2 {
			if dir&(1<<d) != 0 {
				h.setRule(link.From, d, rule)
			}
		}
	})
}

// Traffic sums up what the gates of every link that matches have done.
func (c *Cluster) Traffic(link cluster.Link, dir cluster.Direction) (cluster.Traffic, error) {
	var sum cluster.Traffic
	err := c.each(link, "counting", func(h *host) {
		for _, caller := range h.match(link.From) {
			for d := range 2 {
				if dir&(1<<d) != 0 {
					caller.addTo(&sum, d)
				}
			}
		}
	})
	return sum, err
}

// each calls do for the servers of a link, with the world locked.
func (c *Cluster) each(link cluster.Link, doing string, do func(*host)) error {
	if err := c.checkEnd(link.From); err != nil {
		return fmt.Errorf("%s %s to %s: %w", doing, link.From, link.To, err)
	}
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	if link.To == cluster.Any {
		for _, h := range c.ordered() {
			do(h)
		}
		return nil
	}
	h, err := c.host(link.To)
	if err != nil {
		return fmt.Errorf("%s %s to %s: %w", doing, link.From, link.To, err)
	}
	do(h)
	return nil
}

// checkEnd returns an error if name cannot be an end of a link.
func (c *Cluster) checkEnd(name string) error {
	if name == cluster.Any {
		return nil
	}
	if _, ok := cluster.ClientNumber(name); ok {
		return nil
	}
	_, err := c.host(name)
	return err
}

// SetClock sets node's clock to k, from which it continues, also while the node is down.
func (c *Cluster) SetClock(ctx context.Context, name string, k cluster.Clock) error {
	h, err := c.host(name)
	if err != nil {
		return fmt.Errorf("setting the clock of %w", err)
	}
	c.act(ctx)
	defer c.world.mu.Unlock()
	switch p := h.program.(type) {
	case *node:
		p.setClock(k)
	case *member:
		p.setClock(k)
	default:
		return fmt.Errorf("setting the clock of %s: %w: it is a Sentinel", name, errors.ErrUnsupported)
	}
	return nil
}

// ReadClock is how far the clock of node is ahead of true time.
func (c *Cluster) ReadClock(ctx context.Context, node string) (time.Duration, error) {
	h, err := c.host(node)
	if err != nil {
		return 0, fmt.Errorf("reading the clock of %w", err)
	}
	c.act(ctx)
	defer c.world.mu.Unlock()
	if !h.up || h.stopped() {
		return 0, fmt.Errorf("reading the clock of %s: %w", node, cluster.ErrDown)
	}
	return time.Until(h.wall()), nil
}

// PowerOff kills the server and drops what it had not fsynced.
func (c *Cluster) PowerOff(ctx context.Context, node string) error {
	h, disk, err := c.disk(node)
	if err != nil {
		return fmt.Errorf("cutting the power of %w", err)
	}
	c.act(ctx)
	defer c.world.mu.Unlock()
	h.kill()
	disk.powerOff(c.world.now())
	return nil
}

// Wipe empties the disk of a server that is not running.
func (c *Cluster) Wipe(ctx context.Context, node string) error {
	h, disk, err := c.disk(node)
	if err != nil {
		return fmt.Errorf("wiping the disk of %w", err)
	}
	c.act(ctx)
	defer c.world.mu.Unlock()
	if h.up {
		return fmt.Errorf("wiping the disk of %s: it is running: kill it first", node)
	}
	disk.wipe()
	return nil
}
