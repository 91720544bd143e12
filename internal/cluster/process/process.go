// Package process runs real redis-server, ZooKeeper, etcd, PostgreSQL or MySQL processes, or programs of the user, on
// loopback, with a gate in front of each. It needs Linux and redis-server 7.0 or newer, or Java and ZooKeeper, or etcd,
// or PostgreSQL, or MariaDB or MySQL, but no privileges. It is for tests only.
//
// Read [Start] and [Cluster] first. Addresses (one port for all of a run, two for a cluster):
//
//	127.0.1.i    node i itself; it also connects to others from here
//	127.0.2.i    the gate in front of node i: the only address that is announced;
//	             one port higher the gate in front of its bus (cluster), of its
//	             peer port (etcd) or for its standby (postgres)
//	127.0.3.i    Sentinel i itself; it also connects to others from here
//	127.0.5.i    the gate in front of Sentinel i
//	127.0.4.1…   the clients; from the 251st on 127.4.x.y
//	127.6.i.j    the gates through which member i of a ZooKeeper ensemble reaches member j
//
// A server of kind [cluster.Command] has several ports, one after the other, each with a gate at 127.0.2.i.
//
// So a gate identifies a caller by its address, and Sentinel needs no special
// configuration: every server is announced under its gate's address, and Sentinel
// monitors the address that replicas replicate from. (If these differed, Sentinel
// would reconfigure the replicas to the address that it monitors.)
//
// Servers that faults disconnect ([cluster.Requirements.Network]; needs root) are in
// network namespaces instead, with addresses from .11 (nodes) and .41 (Sentinels) in
// a subnet of 10.192.0.0/10. All gates are at this machine's address in it.
//
// Every redis-server has a random password, the same for all of a run, so that other
// users of the machine cannot reach them. It is in the servers' configuration files,
// which only their owner can read, and in [Cluster.Endpoints]. The cluster bus of Redis
// has no authentication: it accepts every program of this machine.
//
// The differences between Redis, ZooKeeper, etcd and databases are in implementations of software. The parts about
// Redis rather than processes are shared with other launchers: see [Launcher].
package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/lockchaos/lockchaos/topology"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/etcdreader"
	"github.com/lockchaos/lockchaos/internal/cluster/gate"
	"github.com/lockchaos/lockchaos/internal/cluster/mysql"
	"github.com/lockchaos/lockchaos/internal/cluster/postgres"
	"github.com/lockchaos/lockchaos/internal/cluster/zookeeperreader"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// masterName is the name under which Sentinels know the master.
const masterName = "mymaster"

// startWait bounds Start if its context has no earlier deadline. A Sentinel cluster
// takes 1.2 s on an idle machine.
const startWait = time.Minute

// startTries is how often Start tries, with another port each time: another program
// may take the port before the server starts, and Sentinels may replace a master
// that hangs for a moment.
const startTries = 5

// Config describes the servers to start, and their place.
type Config struct {
	Topology     cluster.Topology
	Requirements cluster.Requirements
	Dir          string         // for the logs (n1.log, s1.log, …); empty: with the data, which Close removes
	RedisServer  string         // program of a Redis topology; empty: redis-server on the PATH
	Ledger       *ledger.Ledger // records processes and directories; nil: none
	Log          *slog.Logger   // for servers that exit unexpectedly; nil: none
	// Stranger is called, possibly concurrently, for each connection to a node or Sentinel from an address that belongs
	// to no server or client of the run, before it is served; nil: it is not reported.
	Stranger func(from, gate netip.AddrPort, to string)
}

// Cluster is a set of running server processes. Methods that do not apply to
// its topology return [errors.ErrUnsupported]. They may be called concurrently.
type Cluster struct {
	topology     cluster.Topology
	software     software
	program      string
	version      string
	launcher     Launcher
	port         int              // on loopback
	claimed      *net.TCPListener // locks the port against other runs
	namespaces   *namespaces      // nil: the servers are on loopback, or started with another launcher
	data         string           // temporary directory, removed by Close
	dataDir      *ledger.DataDir  // nil before it was made
	logs         string
	password     string // of every server
	requirements cluster.Requirements
	ledger       *ledger.Ledger
	log          *slog.Logger
	stranger     func(from, gate netip.AddrPort, to string)

	nodes     []*server
	sentinels []*server
	address   address // of the master

	close    sync.Once
	closeErr error
}

var (
	_ cluster.Cluster    = (*Cluster)(nil)
	_ cluster.Killer     = (*Cluster)(nil)
	_ cluster.Pauser     = (*Cluster)(nil)
	_ cluster.Promoter   = (*Cluster)(nil)
	_ cluster.Address    = (*Cluster)(nil)
	_ cluster.Witness    = (*Cluster)(nil)
	_ cluster.Inventory  = (*Cluster)(nil)
	_ cluster.Entries    = (*Cluster)(nil)
	_ cluster.Links      = (*Cluster)(nil)
	_ cluster.Admin      = (*Cluster)(nil)
	_ cluster.Clocks     = (*Cluster)(nil)
	_ cluster.Disks      = (*Cluster)(nil)
	_ cluster.SlowDisks  = (*Cluster)(nil)
	_ cluster.Network    = (*Cluster)(nil)
	_ cluster.Concurrent = (*Cluster)(nil)
)

// Start starts a cluster and returns when it is ready: every server replies in its
// role, every replica is attached, and every Sentinel sees all replicas, all other
// Sentinels and a healthy master. (A failover within a second of the start takes a
// second longer than later ones: see failoverTimeoutMS.) The caller closes the cluster.
// Errors caused by the machine wrap [cluster.ErrEnvironment].
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg.Topology = cfg.Topology.Defaults()
	if err := validate(cfg.Topology); err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	found, err := findSoftware(ctx, cfg)
	if need := cfg.Requirements; err == nil && !cfg.Topology.Redis() {
		switch {
		case need.Network:
			err = fmt.Errorf("%w: servers of topology %s have no networks of their own here", cluster.ErrEnvironment,
				cfg.Topology.Kind)
		case need.Clocks && cfg.Topology.Kind == cluster.Etcd:
			err = fmt.Errorf("%w: the clocks of servers of topology %s cannot be set", cluster.ErrEnvironment,
				cfg.Topology.Kind)
		case need.Disks && cfg.Topology.Database():
			err = fmt.Errorf("%w: only root has such disks, and %s refuses root", cluster.ErrEnvironment,
				cfg.Topology.Kind)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	firstPort := os.Getpid()
	for try := 1; ; try++ {
		c := &Cluster{topology: cfg.Topology, program: found.Program, version: found.Version,
			requirements: cfg.Requirements, logs: cfg.Dir, ledger: cfg.Ledger, log: cfg.Log, stranger: cfg.Stranger}
		c.software = newSoftware(c, found)
		claim := func() error { return c.claim(firstPort) }
		if cfg.Requirements.Network {
			claim = func() error { return c.claimNetwork(ctx, firstPort) }
		}
		err := c.start(ctx, claim)
		if err == nil {
			return c, nil
		}
		err = errors.Join(fmt.Errorf("starting a %s cluster: %w", cfg.Topology.Kind, err), c.Close(ctx))
		if try == startTries || !errors.Is(err, ErrPortTaken) && !errors.Is(err, ErrReplaced) {
			return nil, err
		}
		firstPort += try
	}
}

// StartWith is Start with another launcher, which the caller creates and closes.
// Config.RedisServer is ignored. The error wraps [ErrPortTaken] or [ErrReplaced] if
// a retry may succeed.
func StartWith(ctx context.Context, cfg Config, launcher Launcher) (*Cluster, error) {
	cfg.Topology = cfg.Topology.Defaults()
	if err := validate(cfg.Topology); err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	if !cfg.Topology.Redis() {
		return nil, fmt.Errorf("starting a cluster of topology %s in containers: %w", cfg.Topology.Kind,
			errors.ErrUnsupported)
	}
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	c := &Cluster{topology: cfg.Topology, launcher: launcher,
		requirements: cfg.Requirements, logs: cfg.Dir, ledger: cfg.Ledger, log: cfg.Log, stranger: cfg.Stranger}
	c.software = newRedis(c)
	err := c.start(ctx, c.openGates)
	if err == nil {
		c.version, err = c.nodes[0].version(ctx)
	}
	if err == nil {
		return c, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: %w: %w", cluster.ErrEnvironment, ErrPortTaken, err)
	}
	return nil, errors.Join(fmt.Errorf("starting a %s cluster: %w", cfg.Topology.Kind, err), c.Close(ctx))
}

// start starts everything; claim chooses the addresses and opens the gates.
func (c *Cluster) start(ctx context.Context, claim func() error) error {
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if err := c.makeDirs(); err != nil {
		return err
	}
	if err := claim(); err != nil {
		return err
	}
	if err := c.addRequirements(ctx); err != nil {
		return err
	}
	return c.software.form(ctx)
}

func (c *Cluster) addRequirements(ctx context.Context) error {
	if c.requirements.Clocks {
		if err := c.addClocks(ctx); err != nil {
			return err
		}
	}
	if c.requirements.Disks {
		return c.mountDisks()
	}
	return nil
}

func (c *Cluster) makeDirs() (err error) {
	if c.dataDir, err = c.ledger.NewDataDir(); err != nil {
		return err
	}
	c.data = c.dataDir.Path
	if c.logs == "" {
		c.logs = c.data
	}
	return os.MkdirAll(c.logs, 0o755)
}

// launch starts servers concurrently and waits until each of them replies.
func (c *Cluster) launch(ctx context.Context, servers []*server) error {
	return errors.Join(concurrently(servers, func(s *server) error {
		err := os.WriteFile(s.conf, []byte(c.software.config(s)), 0o600) // it has the password
		if err == nil {
			err = s.start(ctx)
		}
		if err != nil {
			return fmt.Errorf("starting %s: %w", s.name, err)
		}
		return nil
	})...)
}

// Topology describes the running servers, with its defaults filled in.
func (c *Cluster) Topology() cluster.Topology { return c.topology }

// Version is the version of the servers, such as "7.0.15".
func (c *Cluster) Version() string { return c.version }

// Nodes are the data servers, n1 first.
func (c *Cluster) Nodes() []cluster.Node {
	nodes := make([]cluster.Node, len(c.nodes))
	for i, s := range c.nodes {
		nodes[i] = cluster.Node{Name: s.name, Addr: s.gate.Addr(), PastGate: s.location.target()}
	}
	return nodes
}

// Endpoints is how client i (from 0) connects to the cluster. A client that connects
// from another address is served too; the gates name it "client:?".
func (c *Cluster) Endpoints(i int) topology.Endpoints {
	e := topology.Endpoints{Kind: c.topology.Kind, Source: ClientAddr(i).String(), Password: c.password}
	if c.topology.Kind != cluster.Sentinel {
		entries := c.nodes
		if c.topology.Redis() || c.topology.Kind == cluster.Postgres {
			entries = c.nodes[:c.topology.MasterCount()]
		}
		for _, s := range entries {
			e.Addrs = append(e.Addrs, s.gate.Addr())
		}
		return e
	}
	e.MasterName = masterName
	for _, s := range c.sentinels {
		e.Sentinels = append(e.Sentinels, s.gate.Addr())
	}
	return e
}

// Close kills every server and frees every address and file, except logs in
// Config.Dir. Its waits are bounded; ctx does not shorten them, because leftovers
// would disturb the next run.
func (c *Cluster) Close(context.Context) error {
	c.close.Do(func() {
		errs := concurrently(slices.Concat(c.nodes, c.sentinels), func(s *server) error {
			err := errors.Join(s.kill(), s.eachGate((*gate.Gate).Close))
			s.admin.Close()
			if s.reader != nil {
				s.reader.Close()
			}
			return err
		})
		if c.claimed != nil {
			_ = c.claimed.Close()
		}
		errs = append(errs, c.closeDisks(), c.namespaces.close(c.topology))
		if c.dataDir != nil {
			errs = append(errs, c.dataDir.Remove())
		}
		if err := errors.Join(errs...); err != nil {
			c.closeErr = fmt.Errorf("closing the cluster: %w", err)
		}
	})
	return c.closeErr
}

// server finds a node or Sentinel by name.
func (c *Cluster) server(name string) (*server, error) {
	for _, s := range slices.Concat(c.nodes, c.sentinels) {
		if s.name == name {
			return s, nil
		}
	}
	return nil, cluster.ErrNoNode
}

// newServer sets up the files and addresses of server h.
func (c *Cluster) newServer(h Host) *server {
	s := &server{Host: h, name: h.String(), launcher: c.launcher, location: c.launcher.Locate(h), log: c.log}
	s.dir = filepath.Join(c.data, s.name)
	s.disk = filepath.Join(s.dir, "disk")
	s.conf = filepath.Join(s.dir, "server.conf")
	s.logFile = filepath.Join(c.logs, s.name+".log")
	s.admin = newAdmin(s.location.target(), c.password)
	if s.location.Socket != "" {
		s.admin = newAdmin(filepath.Join(s.dir, s.location.Socket), c.password)
	}
	s.software = c.software
	switch c.topology.Kind {
	case cluster.ZooKeeper:
		s.reader = zookeeperreader.New(s.location.target())
	case cluster.Etcd:
		s.reader = etcdreader.New(s.location.target())
	case cluster.Postgres:
		s.reader = postgres.New(s.location.target(), c.password)
		s.mark = "LOCKCHAOS_SERVER_DIR=" + s.dir
		s.env = append(s.env, "PGCHANNELBINDING=disable", "PGTARGETSESSIONATTRS=any") // of its connection to a primary
	case cluster.MySQL:
		s.reader = mysql.New(s.location.target(), c.password)
	}
	return s
}
