// Package docker runs Redis servers in containers of a Docker engine on this
// machine, in a network of their own, with a gate in front of each. Everything that
// is about Redis and not about containers is in package process. It is for tests only.
//
// Read [Start] and [Cluster] first. Addresses, in the subnet that the engine chose
// for the run's network:
//
//	.0.10+i    node i: it listens there, always at the same port, and connects from there
//	.0.40+i    Sentinel i
//	gateway    this machine's own address in that network: all gates, each at its own port
//	127.0.4.1… the clients, as in package process
//
// So gates identify callers by their addresses, as with package process. The addresses
// are fixed: a container that was restarted or reconnected has the same one. This
// program's own commands go through a Unix socket in the server's directory, which no
// network fault affects.
package docker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// Images; see [Config.Image].
const (
	DefaultImage = "redis:7.4"
	// LocalImage is made by `make docker-image` from this machine's redis-server.
	LocalImage = "lockchaos-redis:local"
	// ImageVariable is the environment variable for another default.
	ImageVariable = "LOCKCHAOS_DOCKER_IMAGE"
)

// Config describes the servers to start, and their place.
type Config struct {
	Topology     cluster.Topology
	Requirements cluster.Requirements
	// Image has redis-server 7.0 or newer on its PATH; it is pulled if the engine does not have it. Empty: the value of
	// ImageVariable, else DefaultImage.
	Image  string
	Run    string         // label of everything; empty: the ledger's run, else this process
	Dir    string         // for the logs (n1.log, s1.log, …); empty: with the data, which Close removes
	Ledger *ledger.Ledger // records engine, processes and directories; nil: none
	Log    *slog.Logger   // for servers that exit unexpectedly; nil: none
	// Stranger is as in [process.Config]; nil: none.
	Stranger func(from, gate netip.AddrPort, to string)
}

// Image is the default image.
func Image() string {
	if name := os.Getenv(ImageVariable); name != "" {
		return name
	}
	return DefaultImage
}

// startTries is how often Start tries, each time with other ports and perhaps another
// subnet: another program may take them before they are used.
const startTries = 5

// Cluster is servers in containers. It has the abilities of [process.Cluster], and is a
// [cluster.Network] and a [cluster.Substrate].
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

// Start starts a cluster and returns when it is ready, as process.Start does. The
// caller closes it. Errors caused by the machine wrap [cluster.ErrEnvironment]: no
// engine, no image, networks on another machine.
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
	l, err := newLauncher(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("starting containers: %w", err)
	}
	for try := 0; ; try++ {
		servers, err := l.start(ctx, cfg, try)
		if err == nil {
			go l.watch()
			return &Cluster{Cluster: servers, launcher: l}, nil
		}
		err = fmt.Errorf("starting containers of %s: %w", cfg.Image, l.explain(err))
		retry := errors.Is(err, process.ErrPortTaken) || errors.Is(err, process.ErrReplaced) || errors.Is(err, errSubnetTaken)
		if !retry || try == startTries {
			return nil, errors.Join(err, l.close())
		}
		if failed := l.clear(); failed != nil {
			return nil, errors.Join(err, failed, l.close())
		}
	}
}

// start creates the network and starts the servers in it.
func (l *launcher) start(ctx context.Context, cfg Config, try int) (*process.Cluster, error) {
	if err := l.connect(ctx); err != nil {
		return nil, err
	}
	l.firstPort = process.Port(os.Getpid(), try)
	c, err := process.StartWith(ctx, process.Config{
		Topology: cfg.Topology, Requirements: cfg.Requirements, Dir: cfg.Dir, Ledger: cfg.Ledger, Log: cfg.Log,
		Stranger: cfg.Stranger,
	}, l)
	if err == nil && cfg.Requirements.Clocks {
		if err = l.checkClockLibrary(); err != nil {
			err = errors.Join(err, c.Close(ctx))
		}
	}
	return c, err
}

// Close removes every container and the network, and frees every address and file,
// except logs in Config.Dir. Its waits are bounded. If the engine was lost it kills the
// servers if it may, and leaves the ledger to chaos clean.
func (c *Cluster) Close(ctx context.Context) error {
	c.close.Do(func() {
		c.launcher.stopWatching()
		c.closeErr = errors.Join(c.Cluster.Close(ctx), c.launcher.close())
	})
	return c.closeErr
}

// Image is the image of the containers.
func (c *Cluster) Image() string { return c.launcher.image }

// Engine is the version of the engine, empty if it does not reply.
func (c *Cluster) Engine() string {
	v, err := c.launcher.engine.version(context.Background())
	if err != nil {
		return ""
	}
	return v
}

// Lost is closed when the engine no longer replies.
func (c *Cluster) Lost() <-chan struct{} { return c.launcher.alive.Done() }

// Err is why the engine was lost, nil as long as it replies.
func (c *Cluster) Err() error { return c.launcher.err() }

// Disconnect disconnects a node or Sentinel from the network. The error wraps
// [cluster.ErrNoNode] if there is none of that name.
func (c *Cluster) Disconnect(ctx context.Context, node string) error {
	return c.launcher.disconnect(ctx, node)
}

// Reconnect connects it again under the same address.
func (c *Cluster) Reconnect(ctx context.Context, node string) error {
	return c.launcher.reconnect(ctx, node)
}
