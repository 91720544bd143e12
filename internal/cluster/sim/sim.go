// Package sim simulates a cluster of servers in memory and in virtual time: Redis servers with their replication,
// Sentinels and Redis Cluster, or the ensemble of package zookeeper, on the network of package network. Every event
// follows from a seed. Real client libraries reach it through [network.Actor.Dial]. It has the same interface as
// package process has for real servers; a run repeats itself, and a lock held for seconds takes milliseconds.
//
// It is not Redis: the servers reply as redis-server 7.0.15 does for the commands that locks use (package engine),
// with configured latencies. It runs only inside a bubble (package bubble), and client code must keep to its rules:
// no real input or output, no mutex held while waiting for a reply.
//
// Read [Start] first, and package network: a run repeats itself because no two of its actors are ever awake at the same
// instant.
package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/network"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/sentinel"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/zookeeper"
	"github.com/lockchaos/lockchaos/topology"
)

// Config describes the simulation. Seed and Topology are enough.
type Config struct {
	Seed     uint64
	Topology cluster.Topology
	Actors   int    // clients, from client 0; 0 is 1
	Password string // of every server and Sentinel; empty: none

	// One-way latency, drawn for every segment. Zero is 100 µs to 1 ms.
	MinLatency, MaxLatency time.Duration
	// ReplicaLag is the most that is added to the latency from a master to its replicas, drawn for every segment.
	ReplicaLag time.Duration
	// Priorities delays messages by priority once the cluster has started. nil: latencies alone order them.
	Priorities *network.Priorities
	// Trace gets a line for every segment that arrives: instant in nanoseconds, ends, connection, data. It must
	// not block in the bubble. nil: none.
	Trace io.Writer
}

// Defaults of Config.
const (
	defaultMinLatency = 100 * time.Microsecond
	defaultMaxLatency = time.Millisecond
)

// version is the servers' redis_version.
const version = "7.0.15"

// masterName is the name by which the Sentinels know the master.
const masterName = "lockchaos"

// Cluster is a set of simulated servers. Its methods may be called from several goroutines of the bubble. Close
// stops all timers; the bubble cannot end before.
type Cluster struct {
	config    Config
	topology  cluster.Topology
	world     *network.World
	nodes     []*node
	ensemble  *zookeeper.Ensemble // nil: the servers are nodes
	sentinels *sentinel.Sentinels
	address   masterAddress   // of topology replicated; guarded by world.mu
	sampled   map[string]bool // keys of which a sample was requested; guarded by world.mu
	delivery  string          // see Delivery
}

var _ cluster.Cluster = (*Cluster)(nil)

// withDefaults is c with defaults in place of zeros.
func (c Config) withDefaults() Config {
	c.Topology = c.Topology.Defaults()
	c.Actors = max(c.Actors, 1)
	if c.MaxLatency == 0 {
		c.MinLatency, c.MaxLatency = defaultMinLatency, defaultMaxLatency
	}
	return c
}

func (c Config) validate() error {
	if err := c.Topology.Validate(); err != nil {
		return err
	}
	if c.MinLatency < 0 || c.MaxLatency < c.MinLatency || c.ReplicaLag < 0 {
		return fmt.Errorf("latency from %v to %v, replica lag %v: none may be negative, and the "+
			"smallest latency not above the largest", c.MinLatency, c.MaxLatency, c.ReplicaLag)
	}
	return nil
}

// Start starts a cluster, in the bubble of the caller, and returns when it is
// ready: every replica is attached, and every Sentinel sees all replicas, all
// other Sentinels and a healthy master. That takes about two virtual seconds with Sentinels.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("starting a simulated cluster: %w", err)
	}
	l, err := network.NewSlotTable(cfg.Actors, cfg.Topology.Size()+cfg.Topology.Sentinels)
	if err != nil {
		return nil, fmt.Errorf("starting a simulated cluster: %w", err)
	}
	c := &Cluster{config: cfg, topology: cfg.Topology, sampled: map[string]bool{}}
	c.world = network.NewWorld(cfg.Seed, l, cfg.Trace, network.Span{Min: cfg.MinLatency, Max: cfg.MaxLatency})
	for i := range cfg.Actors {
		c.world.Clients = append(c.world.Clients, network.NewActor(c.world, cluster.ClientName(i), l.Client(i), false))
	}
	c.world.Sentinels = network.SentinelAccess{Master: masterName, Password: cfg.Password}
	c.world.ZooKeeper = cfg.Topology.Kind == cluster.ZooKeeper
	if err := c.build(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a simulated %s cluster: %w", cfg.Topology.Kind, err), c.Close(ctx))
	}
	if cfg.Priorities != nil {
		c.world.Mu.Lock()
		defer c.world.Mu.Unlock()
		c.world.Order = network.NewOrder(c.world, *cfg.Priorities)
		c.delivery = c.world.Order.String()
	}
	return c, nil
}

// Delivery describes the order in which messages arrive, if latencies alone do not decide it.
func (c *Cluster) Delivery() string { return c.delivery }

// Topology is the topology with all defaults filled in.
func (c *Cluster) Topology() cluster.Topology { return c.topology }

// Version is the version of the servers, "7.0.15" for Redis.
func (c *Cluster) Version() string {
	if c.ensemble != nil {
		return zookeeper.Version
	}
	return version
}

// Nodes is the data servers, n1 first.
func (c *Cluster) Nodes() []cluster.Node {
	servers := c.servers()
	nodes := make([]cluster.Node, len(servers))
	for i, h := range servers {
		nodes[i] = cluster.Node{Name: h.Name, Addr: h.Addr}
	}
	return nodes
}

// Endpoints is how a client reaches the cluster with the Dial of its actor, which identifies the client, so Source
// is empty. With Sentinels Addrs is [masterAddr].
func (c *Cluster) Endpoints(int) topology.Endpoints {
	e := topology.Endpoints{Kind: c.topology.Kind, Password: c.config.Password}
	if c.topology.Kind == cluster.Sentinel {
		e.MasterName, e.Addrs, e.Sentinels = masterName, []string{network.MasterAddr}, c.sentinels.Addrs()
		return e
	}
	if c.ensemble != nil {
		e.Addrs, e.Password = c.serverAddrs(), "" // there is no password
		return e
	}
	for _, n := range c.nodes[:c.topology.MasterCount()] {
		e.Addrs = append(e.Addrs, n.Addr)
	}
	return e
}

// Client is the actor that is client i, from 0. It panics if i is not below Config.Actors.
func (c *Cluster) Client(i int) *network.Actor { return c.world.Clients[i] }

// Actor is the actor of that name, see [network.World.Actor].
func (c *Cluster) Actor(name string) *network.Actor { return c.world.Actor(name) }

// Hash is a hash of everything delivered so far: every byte of every command and reply, its sender, and when.
func (c *Cluster) Hash() uint64 {
	c.world.Mu.Lock()
	defer c.world.Mu.Unlock()
	return c.world.Hash
}

// Commands is how many commands of clients the servers have executed.
func (c *Cluster) Commands() int64 {
	c.world.Mu.Lock()
	defer c.world.Mu.Unlock()
	return c.world.Commands
}

// Now is the virtual time since the cluster began to start.
func (c *Cluster) Now() time.Duration { return time.Duration(c.world.Now()) }

// Close ends every server and timer. Clients find their connections closed.
func (c *Cluster) Close(context.Context) error {
	w := c.world
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if w.Closed {
		return nil
	}
	w.Close()
	for _, h := range c.world.Hosts {
		h.Stop()
	}
	return nil
}
