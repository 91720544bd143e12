// Package process runs real redis-server processes on loopback, with a gate in
// front of each. It needs Linux, redis-server 7.0 or newer, and no rights. It
// is not a way to run Redis for anything but a test.
//
// Read [Start] and [Cluster] first. Addresses (one port for all of a run, two for a cluster):
//
//	127.0.1.i    node i itself; it also connects to others from here
//	127.0.2.i    the gate in front of node i: the only address that anybody is told;
//	             in a cluster also the gate in front of its bus, one port higher
//	127.0.3.i    Sentinel i itself; it also connects to others from here
//	127.0.5.i    the gate in front of Sentinel i
//	127.0.4.1…   the clients; from the 251st on 127.4.x.y
//
// So a gate sees from the caller's address who is calling, and Sentinel sees
// nothing strange: every server is announced under its gate's address, and the
// address that Sentinel monitors is the one that replicas replicate from. (If
// these differed, Sentinel would point the replicas to the one it monitors.)
//
// Servers that faults take off the network ([cluster.Requirements.Network]; needs root)
// are in network namespaces instead, .11 on for nodes and .41 on for Sentinels of a
// subnet of 10.192.0.0/10, with all gates at this machine's own address in it.
//
// What of this is about Redis and not about processes serves other grounds too:
// see [Launcher].
package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// MasterName is the name under which Sentinels know the master.
const MasterName = "mymaster"

// readyWait is how long Start waits for the cluster if its context sets no
// earlier end. A Sentinel cluster takes 1.2 s on an idle machine.
const readyWait = time.Minute

// portTries is how often Start begins, with another port each time: somebody may
// take the port between the choice and the server's start, and the Sentinels may
// replace a master that stood still for a moment.
const portTries = 5

// Config is what to start and where.
type Config struct {
	Topology     cluster.Topology
	Requirements cluster.Requirements // what servers have beyond the plain ones
	Dir          string               // folder for the logs (n1.log, s1.log, …); empty: with the data, which Close removes
	RedisServer  string               // program; empty: redis-server on the PATH
	Ledger       *ledger.Ledger       // where processes and folders are written down; nil: nowhere
	Log          *slog.Logger         // tells when a server ends without being asked; nil: nobody
}

// Cluster is a set of running redis-server processes. It has every ability
// that package cluster names; those that the topology has no use for answer
// [errors.ErrUnsupported]. Its methods may be called from several goroutines.
type Cluster struct {
	topology     cluster.Topology
	program      string
	version      string
	launcher     Launcher
	port         int              // on loopback
	claimed      *net.TCPListener // keeps other runs from the port
	cables       *namespaces      // nil: the servers are on loopback, or started with another launcher
	data         string           // temporary folder, removed by Close
	logs         string
	requirements cluster.Requirements
	ledger       *ledger.Ledger
	log          *slog.Logger

	nodes     []*server
	sentinels []*server

	close    sync.Once
	closeErr error
}

var (
	_ cluster.Cluster   = (*Cluster)(nil)
	_ cluster.Killer    = (*Cluster)(nil)
	_ cluster.Pauser    = (*Cluster)(nil)
	_ cluster.Promoter  = (*Cluster)(nil)
	_ cluster.Witness   = (*Cluster)(nil)
	_ cluster.Inventory = (*Cluster)(nil)
	_ cluster.Links     = (*Cluster)(nil)
	_ cluster.Admin     = (*Cluster)(nil)
	_ cluster.Clocks    = (*Cluster)(nil)
	_ cluster.Disks     = (*Cluster)(nil)
	_ cluster.Network   = (*Cluster)(nil)
)

// Start starts a cluster and returns when it is really ready: every server
// answers in its role, every replica is attached, and every Sentinel sees all
// replicas, all other Sentinels and a healthy master. (A failover within a
// second of the start takes a second longer than later ones: see
// downAfterMS.) The caller closes the cluster. Errors that the machine is to blame for wrap [cluster.ErrEnvironment].
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg.Topology = cfg.Topology.Defaults()
	if err := Validate(cfg.Topology); err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	program, version, err := find(ctx, cfg.RedisServer)
	if err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	firstPort := os.Getpid()
	for try := 1; ; try++ {
		c := &Cluster{topology: cfg.Topology, program: program, version: version,
			requirements: cfg.Requirements, logs: cfg.Dir, ledger: cfg.Ledger, log: cfg.Log}
		claim := func() error { return c.claim(firstPort) }
		if cfg.Requirements.Network {
			claim = func() error { return c.claimCables(ctx, firstPort) }
		}
		err := c.start(ctx, claim)
		if err == nil {
			return c, nil
		}
		err = errors.Join(fmt.Errorf("starting a %s cluster: %w", cfg.Topology.Kind, err), c.Close(ctx))
		if try == portTries || !errors.Is(err, ErrPortTaken) && !errors.Is(err, ErrReplaced) {
			return nil, err
		}
		firstPort += try
	}
}

// StartWith is Start with another launcher, which has to be there already and stays when
// the cluster closes. Config.RedisServer and the version are the launcher's business.
// The error wraps [ErrPortTaken] or [ErrReplaced] if another try may do.
func StartWith(ctx context.Context, cfg Config, launcher Launcher) (*Cluster, error) {
	cfg.Topology = cfg.Topology.Defaults()
	if err := Validate(cfg.Topology); err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	c := &Cluster{topology: cfg.Topology, launcher: launcher,
		requirements: cfg.Requirements, logs: cfg.Dir, ledger: cfg.Ledger, log: cfg.Log}
	err := c.start(ctx, c.openGates)
	if err == nil {
		c.version, err = c.nodes[0].askVersion(ctx)
	}
	if err == nil {
		return c, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: %w: %w", cluster.ErrEnvironment, ErrPortTaken, err)
	}
	return nil, errors.Join(fmt.Errorf("starting a %s cluster: %w", cfg.Topology.Kind, err), c.Close(ctx))
}

// start starts everything; claim settles the addresses and opens the gates.
func (c *Cluster) start(ctx context.Context, claim func() error) error {
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if err := c.makeFolders(); err != nil {
		return err
	}
	if err := claim(); err != nil {
		return err
	}
	if err := c.equipServers(ctx); err != nil {
		return err
	}
	// A replica that finds its master at the first try is attached at once; the next try is a second later.
	heads := c.topology.MasterCount()
	if err := c.launch(ctx, c.nodes[:heads]); err != nil {
		return err
	}
	if err := c.launch(ctx, c.nodes[heads:]); err != nil {
		return err
	}
	if c.topology.Kind == cluster.Sharded {
		if err := c.join(ctx); err != nil {
			return err
		}
	}
	if err := c.waitAttached(ctx); err != nil {
		return err
	}
	if c.topology.Kind != cluster.Sentinel {
		return nil
	}
	if err := c.launchSentinels(ctx); err != nil {
		return err
	}
	if err := c.waitWatched(ctx); err != nil {
		return err
	}
	return c.unreplaced(ctx)
}

// launchSentinels starts the Sentinels, which look for each other at once. One
// that is told that another is not there looks again a second later; so the
// gates hold these calls until all are there.
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

func (c *Cluster) equipServers(ctx context.Context) error {
	if c.requirements.Clocks {
		if err := c.fitClocks(ctx); err != nil {
			return err
		}
	}
	if c.requirements.Disks {
		return c.mountDisks()
	}
	return nil
}

func (c *Cluster) makeFolders() (err error) {
	c.data, err = os.MkdirTemp("", "lockchaos-data-")
	if err != nil {
		return err
	}
	if err := c.ledger.Dir(c.data); err != nil {
		return err
	}
	if c.logs == "" {
		c.logs = c.data
	}
	return os.MkdirAll(c.logs, 0o755)
}

// launch starts servers, all at once, and waits until each of them answers.
func (c *Cluster) launch(ctx context.Context, servers []*server) error {
	errs := make([]error, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			if err := os.WriteFile(s.conf, []byte(c.config(s)), 0o644); err != nil {
				errs[i] = err
				return
			}
			errs[i] = s.start(ctx)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Topology is what was started, every default filled in.
func (c *Cluster) Topology() cluster.Topology { return c.topology }

// Version is redis-server's, such as "7.0.15".
func (c *Cluster) Version() string { return c.version }

// Nodes is the data servers, n1 first.
func (c *Cluster) Nodes() []cluster.Node {
	nodes := make([]cluster.Node, len(c.nodes))
	for i, s := range c.nodes {
		nodes[i] = cluster.Node{Name: s.name, Addr: s.gate.Addr()}
	}
	return nodes
}

// Endpoints is how client (from 0) reaches the cluster. A client that connects
// from elsewhere is served too; to the gates it is "client:?".
func (c *Cluster) Endpoints(i int) client.Endpoints {
	e := client.Endpoints{Kind: c.topology.Kind, Source: clientAddr(i).String()}
	if c.topology.Kind != cluster.Sentinel {
		for _, s := range c.nodes[:c.topology.MasterCount()] {
			e.Addrs = append(e.Addrs, s.gate.Addr())
		}
		return e
	}
	e.MasterName = MasterName
	for _, s := range c.sentinels {
		e.Sentinels = append(e.Sentinels, s.gate.Addr())
	}
	return e
}

// Close kills every server and frees every address and file, except logs in
// Config.Dir. Its waits are bounded; ctx does not shorten them, because what
// is left behind spoils the next run.
func (c *Cluster) Close(context.Context) error {
	c.close.Do(func() {
		servers := slices.Concat(c.nodes, c.sentinels)
		errs := make([]error, len(servers))
		var all sync.WaitGroup
		for i, s := range servers {
			all.Go(func() { errs[i] = errors.Join(s.kill(), s.closeGates(), s.admin.close()) })
		}
		all.Wait()
		if c.claimed != nil {
			_ = c.claimed.Close()
		}
		errs = append(errs, c.closeDisks(), c.cables.close(c.topology))
		if c.data != "" {
			errs = append(errs, os.RemoveAll(c.data))
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
	return nil, fmt.Errorf("%s: %w", name, cluster.ErrNoNode)
}

// newServer describes server i (from 1) of a kind: its files and addresses.
func (c *Cluster) newServer(h Host) *server {
	s := &server{Host: h, name: h.String(), launcher: c.launcher, location: c.launcher.Locate(h), log: c.log}
	s.dir = filepath.Join(c.data, s.name)
	s.disk = filepath.Join(s.dir, "disk")
	s.conf = filepath.Join(s.dir, "redis.conf")
	s.logFile = filepath.Join(c.logs, s.name+".log")
	s.admin = newAdmin(s.location.target())
	if s.location.Socket != "" {
		s.admin = newAdmin(filepath.Join(s.dir, s.location.Socket))
	}
	return s
}
