package process

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/installed"
	"github.com/lockchaos/lockchaos/internal/cluster/mysql"
	"github.com/lockchaos/lockchaos/internal/cluster/postgres"
)

// software is the program that the servers of a topology run: Redis, ZooKeeper, etcd, PostgreSQL, MySQL or a program
// of the user. [server] and [Cluster] have the common parts: processes, gates, disks.
type software interface {
	// config is the configuration file of s.
	config(s *server) string
	// prepare is called before each start of s. It returns the arguments of the program.
	prepare(ctx context.Context, s *server) (args []string, err error)
	// form starts the servers and returns when they are ready.
	form(ctx context.Context) error
	probe
}

// probe reads the state of a server, past its gates.
type probe interface {
	// ping returns nil if s replies, which need not mean that it serves clients.
	ping(ctx context.Context, s *server) error
	// sample is the state of s and of keys; see [cluster.Witness].
	sample(ctx context.Context, s *server, keys []string) history.Sample
	// keys are the keys of s, see [cluster.Inventory].
	keys(ctx context.Context, s *server) (map[string]time.Duration, error)
	// time is the time of its wall clock, see [cluster.Clocks].
	time(ctx context.Context, s *server) (time.Time, error)
}

// findSoftware finds the software of cfg.Topology.
func findSoftware(ctx context.Context, cfg Config) (in installed.Software, err error) {
	switch cfg.Topology.Kind {
	case cluster.ZooKeeper:
		return installed.ZooKeeper()
	case cluster.Etcd:
		return installed.Etcd(ctx)
	case cluster.Postgres:
		return installed.Postgres(ctx)
	case cluster.MySQL:
		return installed.MySQL(ctx)
	case cluster.Command:
		return findProgram(cfg.Topology)
	}
	in.Program, in.Version, err = findServer(ctx, cfg.RedisServer)
	return in, err
}

// Missing describes the missing parts of this machine for the servers of t; nil: none. The error wraps
// [cluster.ErrEnvironment].
func Missing(t cluster.Topology) error {
	_, err := findSoftware(context.Background(), Config{Topology: t})
	return err
}

func newSoftware(c *Cluster, in installed.Software) software {
	switch c.topology.Kind {
	case cluster.ZooKeeper:
		return zookeeperSoftware{ensemble{c}, in.Library}
	case cluster.Etcd:
		return etcdSoftware{ensemble{c}}
	case cluster.Postgres:
		return newDatabase(c, postgres.Kind{})
	case cluster.MySQL:
		return newDatabase(c, mysql.Kind{Installer: in.Library})
	case cluster.Command:
		return commandSoftware{c}
	}
	return newRedis(c)
}

// redisSoftware is redis-server, also as Sentinel.
type redisSoftware struct{ *Cluster }

func newRedis(c *Cluster) redisSoftware {
	c.password = rand.Text()
	return redisSoftware{c}
}

func (r redisSoftware) config(s *server) string { return r.redisConfig(s) }

func (r redisSoftware) prepare(_ context.Context, s *server) ([]string, error) {
	args := []string{s.inside(s.conf)}
	if s.Sentinel {
		args = append(args, "--sentinel")
	}
	return args, nil
}

// form starts masters first: a replica that cannot connect to its master retries a second later.
func (r redisSoftware) form(ctx context.Context) error {
	c, masters := r.Cluster, r.topology.MasterCount()
	if err := c.launch(ctx, c.nodes[:masters]); err != nil {
		return err
	}
	if err := c.launch(ctx, c.nodes[masters:]); err != nil {
		return err
	}
	if c.topology.Kind == cluster.Sharded {
		if err := c.join(ctx); err != nil {
			return err
		}
	}
	if err := c.waitReplicas(ctx); err != nil {
		return err
	}
	if c.topology.Kind != cluster.Sentinel {
		return nil
	}
	if err := c.launchSentinels(ctx); err != nil {
		return err
	}
	if err := c.waitSentinels(ctx); err != nil {
		return err
	}
	return c.checkMaster(ctx)
}

// launchSentinels starts the Sentinels, which connect to each other at once. One
// whose connection is refused retries a second later; so the gates hold connections
// until all Sentinels run.
func (c *Cluster) launchSentinels(ctx context.Context) error {
	each := func(rule cluster.Rule) {
		for _, s := range c.sentinels {
			s.gate.SetRule(cluster.Any, cluster.Both, rule)
		}
	}
	each(cluster.Rule{Mode: cluster.Hold})
	defer each(cluster.Rule{})
	return c.launch(ctx, c.sentinels)
}

// time is the reply to TIME.
func (redisSoftware) time(ctx context.Context, s *server) (time.Time, error) {
	replies, err := s.admin.do(ctx, []string{"TIME"})
	if err != nil {
		return time.Time{}, err
	}
	return cluster.ParseTime(replies[0])
}

// ping succeeds on PONG: a server that is still loading its data replies with an error.
func (redisSoftware) ping(ctx context.Context, s *server) error {
	replies, err := s.admin.do(ctx, []string{"PING"})
	if err == nil && replies[0] != "PONG" {
		err = fmt.Errorf("%v", replies[0])
	}
	return err
}
