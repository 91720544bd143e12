package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
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

// host finds a node or Sentinel by name.
func (c *Cluster) host(name string) (*network.Host, error) {
	for _, h := range c.world.Hosts {
		if h.Name == name {
			return h, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, cluster.ErrNoNode)
}

// with calls do for a node or Sentinel, at the next instant of the actor in ctx and with the world locked. Its error
// names the action and the server.
func (c *Cluster) with(ctx context.Context, doing, name string, do func(*network.Host) error) error {
	h, err := c.host(name)
	if err != nil {
		return fmt.Errorf("%s %w", doing, err)
	}
	c.world.Act(ctx)
	defer c.world.Mu.Unlock()
	if err := do(h); err != nil {
		return fmt.Errorf("%s %s: %w", doing, name, err)
	}
	return nil
}

// withNode is with for a Redis server.
func (c *Cluster) withNode(ctx context.Context, doing, name string, do func(*node) error) error {
	return c.with(ctx, doing, name, func(h *network.Host) error {
		n, is := h.Program.(*node)
		if !is {
			return fmt.Errorf("%w: it is not a Redis server", errors.ErrUnsupported)
		}
		return do(n)
	})
}

// withDisk is with for a server that has a disk.
func (c *Cluster) withDisk(ctx context.Context, doing, name string, do func(*network.Host, network.Disk) error) error {
	return c.with(ctx, doing, name, func(h *network.Host) error {
		if server, has := h.Program.(interface{ Disk() network.Disk }); has {
			return do(h, server.Disk())
		}
		return cluster.ErrNoNode
	})
}

// DeleteHeld deletes the nodes of the holders of a lock from an ensemble; see [cluster.Entries].
func (c *Cluster) DeleteHeld(ctx context.Context, node, lock string) (deleted int, err error) {
	if c.ensemble == nil {
		return 0, errNoEnsemble(node)
	}
	return c.ensemble.DeleteHeld(ctx, node, lock)
}

// SetWritable is described at [cluster.Entries].
func (c *Cluster) SetWritable(ctx context.Context, node, lock string, writable bool) (changed bool, err error) {
	if c.ensemble == nil {
		return false, errNoEnsemble(node)
	}
	return c.ensemble.SetWritable(ctx, node, lock, writable)
}

func errNoEnsemble(node string) error {
	return fmt.Errorf("%s is not a member of an ensemble: %w", node, errors.ErrUnsupported)
}

// Kill ends a node, or a Sentinel ("s1"), as SIGKILL does: its writes to the append-only file survive, fsynced or not.
func (c *Cluster) Kill(ctx context.Context, node string) error {
	return c.with(ctx, "killing", node, func(h *network.Host) error {
		h.Kill()
		return nil
	})
}

// Restart starts a killed node or Sentinel at the same address with the same disk.
func (c *Cluster) Restart(ctx context.Context, node string) error {
	return c.with(ctx, "starting", node, func(h *network.Host) error {
		if h.Up {
			return errors.New("it is already running")
		}
		h.Start()
		return nil
	})
}

// Pause stops a node or Sentinel as SIGSTOP does. The error wraps
// [cluster.ErrDown] if it does not run.
func (c *Cluster) Pause(ctx context.Context, node string) error {
	return c.with(ctx, "pausing", node, (*network.Host).Pause)
}

// Resume resumes a paused node or Sentinel, as SIGCONT does.
func (c *Cluster) Resume(ctx context.Context, node string) error {
	return c.with(ctx, "resuming", node, (*network.Host).Resume)
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
	c.world.Act(ctx)
	defer c.world.Mu.Unlock()
	if err := c.sentinels.Failover(); err != nil {
		return fmt.Errorf("requesting a failover: %w", err)
	}
	return nil
}

// SetRule sets the gates of every link that matches. From may be any client, node or Sentinel, even before it has
// connected. The caller is at an instant of its slot, see [network.Actor.Turn].
func (c *Cluster) SetRule(link cluster.Link, dir cluster.Direction, rule cluster.Rule) error {
	return c.each(link, "setting a rule for", func(h *network.Host) {
		for d := range 2 {
			if dir&(1<<d) != 0 {
				h.SetRule(link.From, d, rule)
			}
		}
	})
}

// Traffic sums up the actions of the gates of every link that matches.
func (c *Cluster) Traffic(link cluster.Link, dir cluster.Direction) (cluster.Traffic, error) {
	var sum cluster.Traffic
	err := c.each(link, "counting", func(h *network.Host) {
		for _, caller := range h.Match(link.From) {
			for d := range 2 {
				if dir&(1<<d) != 0 {
					caller.AddTo(&sum, d)
				}
			}
		}
	})
	return sum, err
}

// each calls do for the servers of a link, with the world locked.
func (c *Cluster) each(link cluster.Link, doing string, do func(*network.Host)) error {
	if err := c.checkEnd(link.From); err != nil {
		return fmt.Errorf("%s %s to %s: %w", doing, link.From, link.To, err)
	}
	c.world.Mu.Lock()
	defer c.world.Mu.Unlock()
	if link.To == cluster.Any {
		for _, h := range c.world.Hosts {
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
	return c.with(ctx, "setting the clock of", name, func(h *network.Host) error {
		if !slices.Contains(c.servers(), h) {
			return fmt.Errorf("%w: it is a Sentinel", errors.ErrUnsupported)
		}
		h.Program.SetClock(k)
		return nil
	})
}

// ReadClock is how far the clock of node is ahead of true time.
func (c *Cluster) ReadClock(ctx context.Context, node string) (ahead time.Duration, err error) {
	err = c.with(ctx, "reading the clock of", node, func(h *network.Host) error {
		if !h.Up || h.Stopped() {
			return cluster.ErrDown
		}
		ahead = time.Until(h.Wall())
		return nil
	})
	return ahead, err
}

// PowerOff kills the server and drops its unfsynced data.
func (c *Cluster) PowerOff(ctx context.Context, node string) error {
	return c.withDisk(ctx, "cutting the power of", node, func(h *network.Host, disk network.Disk) error {
		h.Kill()
		disk.PowerOff(c.world.Now())
		return nil
	})
}

// Wipe empties the disk of a server that is not running.
func (c *Cluster) Wipe(ctx context.Context, node string) error {
	return c.withDisk(ctx, "wiping the disk of", node, func(h *network.Host, disk network.Disk) error {
		if h.Up {
			return errors.New("it is running: kill it first")
		}
		disk.Wipe()
		return nil
	})
}
