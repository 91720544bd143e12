package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// promoteByHand promotes the replica with the highest offset and moves the master's address to it, as an operator
// moves a service address: clients and the other replicas reach it by reconnecting. The old master, if it runs,
// remains a master that has no address.
func (c *Cluster) promoteByHand(ctx context.Context) error {
	c.world.act(ctx)
	defer c.world.mu.Unlock()
	chosen, err := c.mostData()
	if err != nil {
		return err
	}
	c.moveTo(chosen, "")
	c.address.old.resetAll(func(string) bool { return true })
	return nil
}

// MoveAddress moves the master's address; connections that clients have open stay.
func (c *Cluster) MoveAddress(ctx context.Context, how cluster.Move) (from, to string, err error) {
	if c.topology.Kind != cluster.Replicated {
		return "", "", fmt.Errorf("moving the master's address in topology %s: %w", c.topology.Kind, errors.ErrUnsupported)
	}
	c.world.act(ctx)
	defer c.world.mu.Unlock()
	chosen, err := c.mostData()
	if err != nil {
		return "", "", err
	}
	c.moveTo(chosen, how.Stale)
	old := c.address.old
	if how.Demote && old.up && !old.paused {
		old.follow(chosen.addr)
		old.done()
	}
	old.resetAll(how.Resets)
	return old.name, chosen.name, nil
}

// SettleAddress makes the old master a replica of the new one.
func (c *Cluster) SettleAddress(ctx context.Context) error {
	c.world.act(ctx)
	defer c.world.mu.Unlock()
	a := &c.address
	c.world.stale = staleAddress{}
	if a.old != nil && a.old.up && !a.old.paused {
		a.old.follow(a.now.addr)
		a.old.done()
	}
	return nil
}

// masterAddress is the state of the master's address, which is that of the first node.
type masterAddress struct {
	now, old *node // the server that has it, and the one that had it before; nil: the first node; none
}

// mostData is the replica with the highest offset. The world is locked.
func (c *Cluster) mostData() (*node, error) {
	var chosen *node
	for _, n := range c.nodes {
		if n.up && !n.paused && n.repl.master != "" && (chosen == nil || n.repl.offset > chosen.repl.offset) {
			chosen = n
		}
	}
	if chosen == nil {
		return nil, fmt.Errorf("promoting a replica by hand: %w: no replica is running", cluster.ErrDown)
	}
	return chosen, nil
}

// moveTo promotes a replica and moves the master's address to it. The world is locked.
func (c *Cluster) moveTo(chosen *node, stale string) {
	chosen.follow("")
	chosen.done()
	c.address = masterAddress{now: chosen, old: cmp.Or(c.address.now, c.nodes[0])}
	addr := c.nodes[0].addr
	c.world.stale = staleAddress{client: stale, addr: addr, old: &c.address.old.host}
	c.world.addresses[addr] = &chosen.host
}
