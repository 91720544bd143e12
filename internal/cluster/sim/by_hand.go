package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
)

// promoteByHand promotes the replica with the highest offset and moves the master's address to it, as an operator
// moves a service address: clients and the other replicas reach it by reconnecting. The old master, if it runs,
// remains a master that has no address.
func (c *Cluster) promoteByHand(ctx context.Context) error {
	c.world.Act(ctx)
	defer c.world.Mu.Unlock()
	chosen, err := c.mostData()
	if err != nil {
		return err
	}
	c.moveTo(chosen, "")
	c.address.old.ResetAll(func(string) bool { return true })
	return nil
}

// MoveAddress moves the master's address; connections that clients have open stay.
func (c *Cluster) MoveAddress(ctx context.Context, how cluster.Move) (from, to string, err error) {
	if c.topology.Kind != cluster.Replicated {
		return "", "", fmt.Errorf("moving the master's address in topology %s: %w", c.topology.Kind, errors.ErrUnsupported)
	}
	c.world.Act(ctx)
	defer c.world.Mu.Unlock()
	chosen, err := c.mostData()
	if err != nil {
		return "", "", err
	}
	c.moveTo(chosen, how.Stale)
	old := c.address.old
	if how.Demote && old.Up && !old.Paused {
		old.follow(chosen.Addr)
		old.done()
	}
	old.ResetAll(how.Resets)
	return old.Name, chosen.Name, nil
}

// SettleAddress makes the old master a replica of the new one.
func (c *Cluster) SettleAddress(ctx context.Context) error {
	c.world.Act(ctx)
	defer c.world.Mu.Unlock()
	a := &c.address
	c.world.Stale = network.StaleAddress{}
	if a.old != nil && a.old.Up && !a.old.Paused {
		a.old.follow(a.now.Addr)
		a.old.done()
	}
	return nil
}

// masterAddress is the state of the master's address, which is the first node's.
type masterAddress struct {
	now, old *node // the server that has it, and its predecessor; nil: the first node; none
}

// mostData is the replica with the highest offset. The world is locked.
func (c *Cluster) mostData() (*node, error) {
	var chosen *node
	for _, n := range c.nodes {
		if n.Up && !n.Paused && n.repl.master != "" && (chosen == nil || n.repl.offset > chosen.repl.offset) {
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
	addr := c.nodes[0].Addr
	c.world.Stale = network.StaleAddress{Client: stale, Addr: addr, Old: &c.address.old.Host}
	c.world.Addresses[addr] = &chosen.Host
}
