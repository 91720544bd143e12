package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/resp"
	"github.com/lockchaos/lockchaos/internal/lossydisk"
)

// MissingDisks describes the missing parts of this machine for disks that lose unfsynced data; "": none.
func MissingDisks() string { return lossydisk.Missing() }

// mountDisks mounts such a disk at the data directory of every node.
func (c *Cluster) mountDisks() error {
	if why := MissingDisks(); why != "" {
		return fmt.Errorf("%w: %s", cluster.ErrEnvironment, why)
	}
	for _, s := range c.nodes {
		backing := filepath.Join(s.dir, "backing")
		if err := os.Mkdir(backing, 0o755); err != nil {
			return err
		}
		if err := c.ledger.Mount(s.disk); err != nil {
			return err
		}
		disk, err := lossydisk.Mount(s.disk, backing)
		if err != nil {
			return fmt.Errorf("%w: %w", cluster.ErrEnvironment, err)
		}
		s.power = disk
	}
	return nil
}

// closeDisks unmounts them, when all servers have exited.
func (c *Cluster) closeDisks() error {
	var errs []error
	for _, s := range c.nodes {
		if s.power != nil {
			errs = append(errs, s.power.Close())
		}
	}
	return errors.Join(errs...)
}

// withDisk calls do for a node that was started with a disk that can lose writes.
func (c *Cluster) withDisk(doing, node string, do func(*server) error) error {
	return c.with(doing, node, func(s *server) error {
		if s.power == nil {
			return fmt.Errorf("%w: the servers were started with plain disks", cluster.ErrEnvironment)
		}
		return do(s)
	})
}

// SlowDisk makes every fsync of a node take as long as each.
func (c *Cluster) SlowDisk(_ context.Context, node string, each time.Duration) error {
	return c.withDisk("slowing the disk of", node, func(s *server) error {
		s.power.Slow(each)
		return nil
	})
}

// SlowFsyncs is how many fsyncs of a node were delayed.
func (c *Cluster) SlowFsyncs(_ context.Context, node string) (n int, err error) {
	err = c.withDisk("counting the fsyncs of", node, func(s *server) error {
		n = s.power.Slowed()
		return nil
	})
	return n, err
}

// PowerOff kills a node and drops its unfsynced data.
func (c *Cluster) PowerOff(_ context.Context, node string) error {
	return c.withDisk("cutting the power of", node, func(s *server) error {
		if err := s.kill(); err != nil {
			return err
		}
		lost, err := s.power.Cut()
		if err == nil {
			c.log.Info("power cut", "node", node, "bytes lost", lost)
		}
		return err
	})
}

// Wipe empties the disk of a node that is not running. Its role and the addresses
// of other nodes are configuration, and stay.
func (c *Cluster) Wipe(_ context.Context, node string) error {
	return c.with("wiping the disk of", node, func(s *server) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running() {
			return errors.New("it is running: kill it first")
		}
		entries, err := os.ReadDir(s.disk)
		errs := []error{err}
		for _, e := range entries {
			errs = append(errs, os.RemoveAll(filepath.Join(s.disk, e.Name())))
		}
		return errors.Join(errs...)
	})
}

// Do runs one command at a node or Sentinel, past the gates.
func (c *Cluster) Do(ctx context.Context, node string, args ...any) (reply any, err error) {
	if len(args) == 0 {
		return nil, errors.New("no command")
	}
	words := cluster.Words(args)
	err = c.with(words[0]+" on", node, func(s *server) error {
		if !s.responsive() {
			return cluster.ErrDown
		}
		replies, err := s.admin.do(ctx, words)
		if err != nil {
			return err
		}
		reply = replies[0]
		if err, isError := reply.(resp.Error); isError {
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return reply, nil
}
