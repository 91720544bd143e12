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

// Paths as seen by a server in its container.
const (
	dataDir = "/data" // replaces the volume of the official images
	logs    = "/logs"
	socket  = "sock"
)

// maxSubnetBits is the prefix length of the smallest subnet that has room for a topology.
const maxSubnetBits = 26

// errSubnetTaken: another network took the subnet after it was chosen.
var errSubnetTaken = errors.New("subnet is taken")

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

	alive        context.Context // ends when the engine is lost, with the cause
	lose         context.CancelCauseFunc
	open         context.Context // ends when the cluster closes
	stopWatching context.CancelFunc

	mu      sync.Mutex
	servers map[process.Host]*containerServer
}

// newLauncher connects to the engine and makes sure that it has the image.
func newLauncher(ctx context.Context, cfg Config) (*launcher, error) {
	e, err := dial(ctx, "")
	if err != nil {
		return nil, err
	}
	l := &launcher{
		engine: e, image: cfg.Image, run: cfg.Run, labels: labels(cfg.Run, cfg.Ledger.Path()), ledger: cfg.Ledger,
		servers: map[process.Host]*containerServer{},
	}
	l.alive, l.lose = context.WithCancelCause(context.Background())
	l.open, l.stopWatching = context.WithCancel(context.Background())
	if err := l.ensureImage(ctx); err != nil {
		return nil, errors.Join(err, l.close())
	}
	if err := cfg.Ledger.Engine(e.DaemonHost()); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// ensureImage pulls the image if the engine does not have it.
func (l *launcher) ensureImage(ctx context.Context) error {
	_, err := l.engine.ImageInspect(ctx, l.image)
	if err == nil {
		return nil
	}
	if errdefs.IsNotFound(err) {
		var pull client.ImagePullResponse
		if pull, err = l.engine.ImagePull(ctx, l.image, client.ImagePullOptions{}); err == nil {
			err = pull.Wait(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: the engine has no image %s and cannot pull it (%v): try docker pull %s; or build one from "+
			"this machine's redis-server (make docker-image) and select it with --docker-image %s or %s",
			cluster.ErrEnvironment, l.image, err, l.image, LocalImage, ImageVariable)
	}
	return nil
}

// connect creates the run's network. Fixed addresses need a subnet chosen by the caller
// (moby, "user configured subnets"); so the engine chooses a free subnet for a first
// network, which is replaced by a second one with that subnet.
func (l *launcher) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	l.engine.setNetwork("", netip.Prefix{})
	trial, err := l.createNetwork(ctx)
	if err != nil {
		return err
	}
	for _, c := range trial.Inspect().IPAM.Config {
		if c.Subnet.Addr().Is4() {
			l.subnet = c.Subnet.Masked()
		}
	}
	if err := trial.Close(ctx); err != nil {
		return fmt.Errorf("removing network %s: %w", l.run, err)
	}
	if !l.subnet.IsValid() || l.subnet.Bits() > maxSubnetBits {
		return fmt.Errorf("%w: the engine chose subnet %v: servers need an IPv4 subnet with 64 addresses "+
			"(default-address-pools in the engine's daemon.json)", cluster.ErrEnvironment, l.subnet)
	}
	l.engine.setNetwork(l.run, l.subnet)
	l.gateway = l.subnet.Addr().Next()
	if l.network, err = l.createNetwork(ctx); err != nil {
		return err
	}
	probe, err := net.Listen("tcp", netip.AddrPortFrom(l.gateway, 0).String())
	if err != nil {
		return fmt.Errorf("%w: the engine's networks are not on this machine (%v), as with Docker Desktop, rootless "+
			"Docker or a remote engine, so containers could not reach the gates: use an engine on this machine, "+
			"or backend process", cluster.ErrEnvironment, err)
	}
	return probe.Close()
}

func (l *launcher) createNetwork(ctx context.Context) (dockertest.ClosableNetwork, error) {
	network, err := l.engine.pool.CreateNetwork(ctx, l.run, &dockertest.NetworkCreateOptions{Labels: l.labels})
	if err == nil {
		return network, nil
	}
	if strings.Contains(err.Error(), "overlaps") {
		err = fmt.Errorf("%w: %w", errSubnetTaken, err)
	}
	return nil, fmt.Errorf("creating network %s: %w: %w", l.run, cluster.ErrEnvironment, err)
}

// setNetwork sets the name and the subnet of the next network.
func (e *engine) setNetwork(net string, subnet netip.Prefix) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.net, e.subnet = net, subnet
}

// Locate gives every server the same ports and its own address, and its gates two
// ports of this machine.
func (l *launcher) Locate(h process.Host) process.Location {
	p := process.InSubnet(l.subnet, l.gateway, l.firstPort, h)
	p.Dir, p.Log, p.Socket = dataDir, logs+"/"+h.String()+".log", socket
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	l.engine.addresses[l.nameOf(h)] = p.IP
	return p
}

func (l *launcher) nameOf(h process.Host) string { return l.run + "-" + h.String() }

// Launch creates the server's container, or restarts it.
func (l *launcher) Launch(ctx context.Context, spec process.LaunchSpec) (process.Process, error) {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	began := time.Now()
	l.mu.Lock()
	old := l.servers[spec.Host]
	l.mu.Unlock()
	var id string
	var err error
	if old == nil {
		id, err = l.create(ctx, spec)
	} else {
		id = old.id
		select {
		case <-old.recorded: // the engine does not start a container that it considers running
		case <-ctx.Done():
			return nil, fmt.Errorf("restarting container %s: the engine still considers it running: %w", old.name, ctx.Err())
		}
		_, err = l.engine.ContainerStart(ctx, id, client.ContainerStartOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("starting container %s: %w: %w", l.nameOf(spec.Host), cluster.ErrEnvironment, err)
	}
	s := &containerServer{
		launcher: l, id: id, name: l.nameOf(spec.Host), log: spec.Log, started: began,
		exited: make(chan struct{}), recorded: make(chan struct{}),
	}
	l.mu.Lock()
	l.servers[spec.Host] = s
	l.mu.Unlock()
	if err := s.identify(ctx); err != nil {
		return nil, err
	}
	go s.watch()
	return s, nil
}

// create creates and starts a new container.
func (l *launcher) create(ctx context.Context, spec process.LaunchSpec) (string, error) {
	repository, tag := splitImage(l.image)
	dir, err := filepath.Abs(spec.Dir)
	if err != nil {
		return "", err
	}
	logDir, err := filepath.Abs(filepath.Dir(spec.Log))
	if err != nil {
		return "", err
	}
	r, err := l.engine.pool.Run(ctx, repository,
		dockertest.WithTag(tag), dockertest.WithoutReuse(), dockertest.WithName(l.nameOf(spec.Host)),
		dockertest.WithLabels(l.labels), dockertest.WithEntrypoint([]string{process.Program}),
		dockertest.WithCmd(spec.Args), dockertest.WithEnv(spec.Env), dockertest.WithUser(user()),
		dockertest.WithWorkingDir(dataDir), dockertest.WithHostConfig(l.hostConfig(dir, logDir)))
	if err != nil {
		return "", err
	}
	return r.ID(), nil
}

// splitImage splits name at the colon of its tag.
func splitImage(name string) (repository, tag string) {
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[:i], name[i+1:]
	}
	return name, "latest"
}
