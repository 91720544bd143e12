package process

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// promoteByHand makes the replica with the most data a master, and has the
// address under which everybody knows the master lead to it, as an operator
// does who moves a service address: clients and the other replicas follow by
// connecting again. The old master, if it lives, is a master still, that nobody
// can reach under any address.
func (c *Cluster) promoteByHand(ctx context.Context) error {
	chosen, most := (*server)(nil), int64(-1)
	for _, s := range c.nodes {
		if offset, ok := s.replicated(ctx); ok && offset > most {
			chosen, most = s, offset
		}
	}
	if chosen == nil {
		return fmt.Errorf("promoting a replica by hand: %w: no replica answers", cluster.ErrDown)
	}
	replies, err := chosen.admin.ask(ctx, []string{"REPLICAOF", "NO", "ONE"})
	if err == nil && replies[0] != "OK" {
		err = fmt.Errorf("%v", replies[0])
	}
	if err != nil {
		return fmt.Errorf("promoting %s by hand: %w", chosen.name, err)
	}
	address := c.nodes[0].gate
	address.Redirect(chosen.location.target())
	return address.Admit()
}

// replicated is how far a replica has come; false if s is none, or does not
// answer. ROLE does not say it any more when the link to the master is gone.
func (s *server) replicated(ctx context.Context) (int64, bool) {
	if !s.up() {
		return 0, false
	}
	replies, err := s.admin.ask(ctx, []string{"INFO", "replication"})
	if err != nil {
		return 0, false
	}
	text, _ := replies[0].(string)
	_, rest, found := strings.Cut(text, "slave_repl_offset:")
	number, _, _ := strings.Cut(rest, "\r\n")
	offset, err := strconv.ParseInt(number, 10, 64)
	return offset, found && err == nil
}
