package sim

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// promoteByHand makes the replica with the most data a master, and has the
// address under which everybody knows the master lead to it, as an operator
// does who moves a service address: clients and the other replicas follow by
// connecting again. The old master, if it lives, is a master still, that nobody
// can reach under any address.
func (c *Cluster) promoteByHand(ctx context.Context) error {
	c.act(ctx)
	defer c.world.mu.Unlock()
	var chosen *node
	for _, n := range c.nodes {
		if n.up && !n.paused && n.repl.master != "" && (chosen == nil || n.repl.offset > chosen.repl.offset) {
			chosen = n
		}
	}
	if chosen == nil {
		return fmt.Errorf("promoting a replica by hand: %w: no replica answers", cluster.ErrDown)
	}
	chosen.follow("")
	chosen.done()
	address := c.nodes[0].addr
	former := c.hosts[address]
	c.hosts[address] = &chosen.host
	for _, caller := range former.order {
		for _, conn := range append([]*conn(nil), caller.conns...) {
			conn.reset()
		}
	}
	return nil
}
