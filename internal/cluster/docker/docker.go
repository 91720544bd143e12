// Package docker runs Redis servers in containers of a Docker engine on this
// machine, on a network of their own, with a gate in front of each. Everything
// that is about Redis and not about containers comes from package process. It
// is not a way to run Redis for anything but a test.
//
// Read [Start] and [Cluster] first. Addresses, in the subnet that the engine
// chose for the run's network:
//
//	.0.10+i    node i: it listens and calls from there, always at the same port
//	.0.40+i    Sentinel i, likewise
//	gateway    this machine's own address in that network: all gates, each at a port of its own
//	127.0.4.1… the clients, as in package process
//
// So gates tell callers apart by address, as everywhere. The addresses are
// fixed: a container that was restarted or taken off the network comes back
// under the one it had. This program's own questions go through a Unix socket
// in the server's folder, which no network fault touches.
package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// Images. The default is an official one; see [Config.Image] for others.
const (
	DefaultImage = "redis:7.4"
	// LocalImage is what `make docker-image` makes of this machine's own redis-server.
	LocalImage = "lockchaos-redis:local"
	// ImageVariable is the environment variable that names another default.
	ImageVariable = "LOCKCHAOS_DOCKER_IMAGE"
)

// Config is what to start and where.
type Config struct {
	Topology     cluster.Topology
	Requirements cluster.Requirements // what the servers have beyond plain ones
	// Image has redis-server 7.0 or newer on its PATH; it is pulled if the engine does not
	// have it. Empty: what ImageVariable names, else DefaultImage.
	Image  string
	Run    string         // what everything is labelled with; empty: the ledger's run, else this process
	Dir    string         // folder for the logs (n1.log, s1.log, …); empty: with the data, which Close removes
	Ledger *ledger.Ledger // where engine, processes and folders are written down; nil: nowhere
	Log    *slog.Logger   // tells when a server ends without being asked; nil: nobody
}

// Image is the image that is taken if none is named.
func Image() string {
	if name := os.Getenv(ImageVariable); name != "" {
		return name
	}
	return DefaultImage
}

// startTries is how often Start begins, each time with other ports and perhaps
// another subnet: somebody may take them between the choice and the use.
const startTries = 5

// Cluster is servers in containers. Beside the abilities of [process.Cluster] it
// has those of [cluster.Network] and [cluster.Substrate].
type Cluster struct {
	*process.Cluster
	launcher *launcher

	close    sync.Once
	closeErr error
}

var (
	_ cluster.Cluster   = (*Cluster)(nil)
	_ cluster.Network   = (*Cluster)(nil)
	_ cluster.Substrate = (*Cluster)(nil)
)

// Start starts a cluster and returns when it is ready, as process.Start does.
// The caller closes it. Errors that the machine is to blame for wrap
// [cluster.ErrEnvironment]: no engine, no image, networks that are elsewhere.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	if cfg.Image == "" {
		cfg.Image = Image()
	}
	if cfg.Run == "" {
		cfg.Run = cfg.Ledger.Run()
	}
	if cfg.Run == "" {
		cfg.Run = fmt.Sprintf("lockchaos-%d-%d", os.Getpid(), time.Now().UnixNano())
	}
	g, err := newLauncher(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("starting containers: %w", err)
	}
	for try := 0; ; try++ {
		servers, err := g.start(ctx, cfg, try)
		if err == nil {
			go g.watch()
			return &Cluster{Cluster: servers, launcher: g}, nil
		}
		err = fmt.Errorf("starting containers of %s: %w", cfg.Image, g.explain(err))
		again := errors.Is(err, process.ErrPortTaken) || errors.Is(err, process.ErrReplaced) || errors.Is(err, errSubnetTaken)
		if !again || try == startTries {
			return nil, errors.Join(err, g.close())
		}
		if failed := g.clear(); failed != nil {
			return nil, errors.Join(err, failed, g.close())
		}
	}
}

// start makes the network and has package process start the servers on it.
func (g *launcher) start(ctx context.Context, cfg Config, try int) (*process.Cluster, error) {
	if err := g.connect(ctx); err != nil {
		return nil, err
	}
	g.firstPort = process.Port(os.Getpid(), try)
	c, err := process.StartWith(ctx, process.Config{
		Topology: cfg.Topology, Requirements: cfg.Requirements, Dir: cfg.Dir, Ledger: cfg.Ledger, Log: cfg.Log,
	}, g)
	if err == nil && cfg.Requirements.Clocks {
		if err = g.checkClockLibrary(); err != nil {
			err = errors.Join(err, c.Close(ctx))
		}
	}
	return c, err
}

// Close removes every container and the network, and frees every address and
// file, except logs in Config.Dir. Its waits are bounded. Without an engine it ends
// the servers if it may, and leaves the ledger to chaos clean.
func (c *Cluster) Close(ctx context.Context) error {
	c.close.Do(func() {
		c.launcher.stopWatching()
		c.closeErr = errors.Join(c.Cluster.Close(ctx), c.launcher.close())
	})
	return c.closeErr
}

// Image is what the containers are made of.
func (c *Cluster) Image() string { return c.launcher.image }

// Engine is the version of the engine, empty if it does not say.
func (c *Cluster) Engine() string {
	v, err := c.launcher.engine.version(context.Background())
	if err != nil {
		return ""
	}
	return v
}

// Lost is closed when the engine does not answer any more.
func (c *Cluster) Lost() <-chan struct{} { return c.launcher.failed }

// Err says what became of the engine, nil as long as it answers.
func (c *Cluster) Err() error { return c.launcher.err() }

// Disconnect takes a node or Sentinel off the network. The error wraps
// [cluster.ErrNoNode] if there is none of that name.
func (c *Cluster) Disconnect(ctx context.Context, node string) error {
	return c.launcher.disconnect(ctx, node)
}

// Reconnect puts it back under the address that it had.
func (c *Cluster) Reconnect(ctx context.Context, node string) error {
	return c.launcher.reconnect(ctx, node)
}
