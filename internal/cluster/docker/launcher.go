package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/ory/dockertest/v4"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// What a server sees in its container.
const (
	folder = "/data" // its folder; official images want a volume there, which it replaces
	logs   = "/logs"
	socket = "sock"
)

// maxSubnetBits is the bits of the smallest subnet that has room for a topology.
const maxSubnetBits = 26

// errSubnetTaken says that another network has got the subnet in between.
var errSubnetTaken = errors.New("the subnet is taken")

// launcher is the [process.Launcher] of containers: an engine and the run's network.
type launcher struct {
	engine *engine
	image  string
	run    string
	labels map[string]string
	ledger *ledger.Ledger

	network   dockertest.ClosableNetwork
	subnet    netip.Prefix
	gateway   netip.Addr
	firstPort int

	mu      sync.Mutex
	servers map[process.Host]*containerServer
	failure error         // why the engine is gone
	failed  chan struct{} // closed when it is
	closing chan struct{} // closed when the cluster closes
	closed  bool
}

// newLauncher connects to the engine and sees to it that it has the image.
func newLauncher(ctx context.Context, cfg Config) (*launcher, error) {
	e, err := dial(ctx, "")
	if err != nil {
		return nil, err
	}
	g := &launcher{
		engine: e, image: cfg.Image, run: cfg.Run, labels: labels(cfg.Run, cfg.Ledger.Path()), ledger: cfg.Ledger,
		servers: map[process.Host]*containerServer{}, failed: make(chan struct{}), closing: make(chan struct{}),
	}
	if err := g.ensureImage(ctx); err != nil {
		return nil, errors.Join(err, g.close())
	}
	if err := cfg.Ledger.Engine(e.DaemonHost()); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// ensureImage pulls the image if the engine does not have it.
func (g *launcher) ensureImage(ctx context.Context) error {
	_, err := g.engine.ImageInspect(ctx, g.image)
	if err == nil {
		return nil
	}
	if errdefs.IsNotFound(err) {
		var pull client.ImagePullResponse
		if pull, err = g.engine.ImagePull(ctx, g.image, client.ImagePullOptions{}); err == nil {
			err = pull.Wait(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: the engine has no image %s and cannot pull it (%v): try docker pull %s; or make one of "+
			"this machine's redis-server with make docker-image, and name it with --docker-image %s or %s",
			cluster.ErrEnvironment, g.image, err, g.image, LocalImage, ImageVariable)
	}
	return nil
}

// connect makes the run's network. The engine chooses a subnet that nobody has;
// fixed addresses are to be had only in one that was asked for by name
// (moby, "user configured subnets"), so that the network is made twice.
func (g *launcher) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	g.engine.setNetwork("", netip.Prefix{})
	trial, err := g.createNetwork(ctx)
	if err != nil {
		return err
	}
	for _, c := range trial.Inspect().IPAM.Config {
		if c.Subnet.Addr().Is4() {
			g.subnet = c.Subnet.Masked()
		}
	}
	if err := trial.Close(ctx); err != nil {
		return fmt.Errorf("removing network %s: %w", g.run, err)
	}
	if !g.subnet.IsValid() || g.subnet.Bits() > maxSubnetBits {
		return fmt.Errorf("%w: the engine gives networks the subnet %v: servers need one of IPv4 with 64 addresses "+
			"(default-address-pools in the engine's daemon.json)", cluster.ErrEnvironment, g.subnet)
	}
	g.engine.setNetwork(g.run, g.subnet)
	g.gateway = g.subnet.Addr().Next()
	if g.network, err = g.createNetwork(ctx); err != nil {
		return err
	}
	l, err := net.Listen("tcp", netip.AddrPortFrom(g.gateway, 0).String())
	if err != nil {
		return fmt.Errorf("%w: the engine's networks are not on this machine (%v), as with Docker Desktop, rootless "+
			"Docker or a remote engine: containers could not reach the gates; take an engine of this very machine, "+
			"or backend process", cluster.ErrEnvironment, err)
	}
	return l.Close()
}

func (g *launcher) createNetwork(ctx context.Context) (dockertest.ClosableNetwork, error) {
	network, err := g.engine.pool.CreateNetwork(ctx, g.run, &dockertest.NetworkCreateOptions{Labels: g.labels})
	if err == nil {
		return network, nil
	}
	if strings.Contains(err.Error(), "overlaps") {
		err = fmt.Errorf("%w: %w", errSubnetTaken, err)
	}
	return nil, fmt.Errorf("making network %s: %w: %w", g.run, cluster.ErrEnvironment, err)
}

// setNetwork says what the next network and its containers are to get.
func (e *engine) setNetwork(net string, subnet netip.Prefix) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.net, e.subnet = net, subnet
}

// Locate gives every server the same ports and an address of its own, and its
// gates two ports of this machine.
func (g *launcher) Locate(h process.Host) process.Location {
	p := process.InSubnet(g.subnet, g.gateway, g.firstPort, h)
	p.Dir, p.Log, p.Socket = folder, logs+"/"+h.String()+".log", socket
	g.engine.mu.Lock()
	defer g.engine.mu.Unlock()
	g.engine.addresses[g.nameOf(h)] = p.IP
	return p
}

func (g *launcher) nameOf(h process.Host) string { return g.run + "-" + h.String() }

// Launch makes the server's container, or starts the one that it has.
func (g *launcher) Launch(ctx context.Context, l process.LaunchSpec) (process.Process, error) {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	began := time.Now()
	g.mu.Lock()
	old := g.servers[l.Host]
	g.mu.Unlock()
	var id string
	var err error
	if old == nil {
		id, err = g.create(ctx, l)
	} else {
		id = old.id
		select {
		case <-old.recorded: // the engine would not start what it believes to run
		case <-ctx.Done():
			return nil, fmt.Errorf("starting container %s again: its end was not noted: %w", old.name, ctx.Err())
		}
		_, err = g.engine.ContainerStart(ctx, id, client.ContainerStartOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("starting container %s: %w: %w", g.nameOf(l.Host), cluster.ErrEnvironment, err)
	}
	b := &containerServer{
		launcher: g, id: id, name: g.nameOf(l.Host), log: l.Log, started: began,
		ended: make(chan struct{}), recorded: make(chan struct{}),
	}
	g.mu.Lock()
	g.servers[l.Host] = b
	g.mu.Unlock()
	if err := b.identify(ctx); err != nil {
		return nil, err
	}
	go b.watch()
	return b, nil
}

// create has dockertest run the container: a new one, never one that ran before.
func (g *launcher) create(ctx context.Context, l process.LaunchSpec) (string, error) {
	repository, tag := splitImage(g.image)
	dir, err := filepath.Abs(l.Dir)
	if err != nil {
		return "", err
	}
	logDir, err := filepath.Abs(filepath.Dir(l.Log))
	if err != nil {
		return "", err
	}
	r, err := g.engine.pool.Run(ctx, repository,
		dockertest.WithTag(tag), dockertest.WithoutReuse(), dockertest.WithName(g.nameOf(l.Host)),
		dockertest.WithLabels(g.labels), dockertest.WithEntrypoint([]string{process.Program}),
		dockertest.WithCmd(l.Args), dockertest.WithEnv(l.Env), dockertest.WithUser(user()),
		dockertest.WithWorkingDir(folder), dockertest.WithHostConfig(g.hostConfig(dir, logDir)))
	if err != nil {
		return "", err
	}
	return r.ID(), nil
}

// splitImage cuts name into what stands before and after the tag's colon.
func splitImage(name string) (repository, tag string) {
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[:i], name[i+1:]
	}
	return name, "latest"
}
