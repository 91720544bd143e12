package process

import (
	"context"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
)

// ensemble has the common parts of ZooKeeper, etcd and databases.
type ensemble struct{ *Cluster }

// ensembleReader is the harness's own session at one member, past the gate.
type ensembleReader interface {
	// Sample is the role of the member, and the holders of locks. The error says why it does not serve clients.
	Sample(ctx context.Context, keys []string) (history.Sample, error)
	// Keys are the nodes or keys of all locks, as lock/node. They stay until they are deleted or their session ends.
	Keys(ctx context.Context) (map[string]time.Duration, error)
	Close()
}

// entryReader is a reader of servers that have a node or key for each holder of a lock; see [cluster.Entries].
type entryReader interface {
	DeleteHeld(ctx context.Context, lock string) (int, error)
	SetWritable(ctx context.Context, lock string, writable bool) (changed bool, err error)
}

// form starts all members at once, a standby of PostgreSQL after the primary that it copies, and waits until each
// serves clients.
func (e ensemble) form(ctx context.Context) error {
	first := len(e.nodes)
	if e.topology.Kind == cluster.Postgres {
		first = 1
	}
	if err := e.launch(ctx, e.nodes[:first]); err != nil {
		return err
	}
	if err := e.launch(ctx, e.nodes[first:]); err != nil {
		return err
	}
	for _, s := range e.nodes {
		err := poll(ctx, func() string {
			switch seen := e.sample(ctx, s, nil); {
			case !seen.Up:
				return "it serves no clients"
			case s.I == 1 && seen.Replicas < e.topology.Replicas:
				return "no standby follows it"
			}
			return ""
		})
		if err != nil {
			return fmt.Errorf("waiting for %s to serve clients: %w; its log ends with:\n%s", s.name, err, s.tail())
		}
	}
	if e.topology.Kind == cluster.Etcd && e.topology.Options[cluster.NoFsync] != "yes" {
		return nil // it has fsynced the data that it needs to start again
	}
	return e.syncDisks()
}

// syncDisks makes the members' writes so far durable, as the kernel would have done long before a power cut in
// production. ZooKeeper does not fsync its first snapshot, and a member without one does not start again.
func (e ensemble) syncDisks() error {
	for _, s := range e.nodes {
		if s.power == nil {
			continue
		}
		if err := s.power.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// sample reads the role and who is first at each lock. A member that does not serve clients, as in an election, has
// no sample.
func (ensemble) sample(ctx context.Context, s *server, keys []string) history.Sample {
	sample, err := s.reader.Sample(ctx, keys)
	if err != nil {
		return history.Sample{Node: s.name}
	}
	sample.Node = s.name
	return sample
}

func (ensemble) keys(ctx context.Context, s *server) (map[string]time.Duration, error) {
	return s.reader.Keys(ctx)
}
