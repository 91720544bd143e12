package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// replicating is software whose replicas can be promoted.
type replicating interface {
	// offset is the replication offset of a replica; false if s is none, or does not reply.
	offset(ctx context.Context, s *server) (int64, bool)
	// promote makes a replica a master, and returns when it is one.
	promote(ctx context.Context, s *server) error
}

// promoteByHand makes the replica with the highest offset a master and moves
// the master's address to it, as an operator moves a service address:
// clients and the other replicas follow when they reconnect. The old master, if it
// runs, is still a master, but has no address.
func (c *Cluster) promoteByHand(ctx context.Context) error {
	chosen, err := c.mostData(ctx)
	if err != nil {
		return err
	}
	old, err := c.moveTo(ctx, chosen, "")
	if err == nil {
		old.gate.Reset(func(string) bool { return true })
	}
	return err
}

// MoveAddress moves the master's address; connections that clients have open stay.
func (c *Cluster) MoveAddress(ctx context.Context, how cluster.Move) (from, to string, err error) {
	if c.topology.Kind != cluster.Replicated {
		return "", "", fmt.Errorf("moving the master's address in topology %s: %w", c.topology.Kind, errors.ErrUnsupported)
	}
	chosen, err := c.mostData(ctx)
	if err != nil {
		return "", "", err
	}
	if how.Demote {
		if err := c.addressed().follow(ctx, chosen); err != nil {
			return "", "", err
		}
	}
	old, err := c.moveTo(ctx, chosen, how.Stale)
	if err != nil {
		return "", "", err
	}
	old.gate.Reset(how.Resets)
	return old.name, chosen.name, nil
}

// SettleAddress makes the old master a replica of the new one.
func (c *Cluster) SettleAddress(ctx context.Context) error {
	c.address.Lock()
	now, old := c.address.now, c.address.old
	c.address.Unlock()
	if old == nil {
		return nil
	}
	c.nodes[0].gate.Settle()
	if !old.responsive() {
		return nil
	}
	return old.follow(ctx, now)
}

// address is the server that has the master's address, and its predecessor.
type address struct {
	sync.Mutex
	now, old *server // nil: the first node; none
}

// addressed is the server that has the master's address.
func (c *Cluster) addressed() *server {
	c.address.Lock()
	defer c.address.Unlock()
	return cmp.Or(c.address.now, c.nodes[0])
}

// moveTo promotes a replica and moves the master's address to it. It returns the server that had it.
func (c *Cluster) moveTo(ctx context.Context, chosen *server, stale string) (*server, error) {
	old := c.addressed()
	if err := c.software.(replicating).promote(ctx, chosen); err != nil {
		return nil, fmt.Errorf("promoting %s by hand: %w", chosen.name, err)
	}
	c.address.Lock()
	c.address.now, c.address.old = chosen, old
	c.address.Unlock()
	return old, c.nodes[0].gate.Move(chosen.gate, stale)
}

// follow makes s a replica of another server.
func (s *server) follow(ctx context.Context, master *server) error {
	gate := master.location.Gate
	if err := s.replicaOf(ctx, gate.Addr().String(), fmt.Sprint(gate.Port())); err != nil {
		return fmt.Errorf("making %s a replica of %s: %w", s.name, master.name, err)
	}
	return nil
}

func (s *server) replicaOf(ctx context.Context, host, port string) error {
	replies, err := s.admin.do(ctx, []string{"REPLICAOF", host, port})
	if err != nil {
		return err
	}
	if text := fmt.Sprint(replies[0]); !strings.HasPrefix(text, "OK") { // or "OK Already connected to specified master"
		return errors.New(text)
	}
	return nil
}

// mostData is the replica with the highest offset.
func (c *Cluster) mostData(ctx context.Context) (*server, error) {
	chosen, most := (*server)(nil), int64(-1)
	for _, s := range c.nodes {
		if !s.responsive() {
			continue
		}
		if offset, ok := c.software.(replicating).offset(ctx, s); ok && offset > most {
			chosen, most = s, offset
		}
	}
	if chosen == nil {
		return nil, fmt.Errorf("promoting a replica by hand: %w: no replica replies", cluster.ErrDown)
	}
	return chosen, nil
}

func (redisSoftware) promote(ctx context.Context, s *server) error {
	return s.replicaOf(ctx, "NO", "ONE")
}

// offset asks INFO: ROLE no longer has the offset when the link to the master is down.
func (redisSoftware) offset(ctx context.Context, s *server) (int64, bool) {
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
