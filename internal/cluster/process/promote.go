package process

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// promoteByHand makes the replica with the highest offset a master and redirects
// the master's announced address to it, as an operator moves a service address:
// clients and the other replicas follow when they reconnect. The old master, if it
// runs, is still a master, but has no address.
func (c *Cluster) promoteByHand(ctx context.Context) error {
	chosen, most := (*server)(nil), int64(-1)
	for _, s := range c.nodes {
		if offset, ok := s.replicationOffset(ctx); ok && offset > most {
			chosen, most = s, offset
		}
	}
	if chosen == nil {
		return fmt.Errorf("promoting a replica by hand: %w: no replica replies", cluster.ErrDown)
	}
	replies, err := chosen.admin.do(ctx, []string{"REPLICAOF", "NO", "ONE"})
	if err == nil && replies[0] != "OK" {
		err = fmt.Errorf("%v", replies[0])
	}
	if err != nil {
		return fmt.Errorf("promoting %s by hand: %w", chosen.name, err)
	}
	gate := c.nodes[0].gate
	gate.Redirect(chosen.location.target())
	return gate.Admit()
}

// replicationOffset is the offset of a replica; false if s is none, or does not
// reply. ROLE no longer has it when the link to the master is down.
func (s *server) replicationOffset(ctx context.Context) (int64, bool) {
	if !s.responsive() {
		return 0, false
	}
	text, err := s.info(ctx, "replication", "slave_repl_offset")
	if err != nil {
		return 0, false
	}
	offset, err := strconv.ParseInt(text, 10, 64)
	return offset, err == nil
}

// info is one field of a section of INFO; empty if the section does not have it.
func (s *server) info(ctx context.Context, section, field string) (string, error) {
	replies, err := s.admin.do(ctx, []string{"INFO", section})
	if err != nil {
		return "", err
	}
	text, _ := replies[0].(string)
	_, rest, _ := strings.Cut(text, field+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value, nil
}
