package sim

import (
	"context"
	"fmt"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// promoteByHand promotes the replica with the highest offset and moves the master's address to it, as an operator
// moves a service address: clients and the other replicas reach it by reconnecting. The old master, if it runs,
// remains a master that has no address.
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
		return fmt.Errorf("promoting a replica by hand: %w: no replica is running", cluster.ErrDown)
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
