package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/ory/dockertest/v4"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// Bounds of requests to the engine. Measured: it started a container within 0.4 s,
// killed it within 0.25 s and paused it within 0.04 s.
const (
	pingWait  = 3 * time.Second
	callWait  = 20 * time.Second // one call with an effect
	pingEvery = 500 * time.Millisecond
	pingTries = 3 // failed pings after which the engine is lost
)

// Labels of containers and networks.
const (
	runLabel     = "lockchaos.run"
	ledgerLabel  = "lockchaos.ledger"  // path of the run's ledger; empty: none
	machineLabel = "lockchaos.machine" // on which the ledger is
)

// engine is a client of a Docker engine. It adds settings that options of dockertest cannot express: the subnet of a
// network, and the address of a container in it.
type engine struct {
	*client.Client
	pool dockertest.ClosablePool

	mu        sync.Mutex
	subnet    netip.Prefix          // of the next network; zero: the engine's choice
	addresses map[string]netip.Addr // addresses by container name
	net       string                // name of the network
}

// EngineError: no Docker engine replies. It wraps [cluster.ErrEnvironment].
type EngineError struct {
	Host string
	Err  error // of the attempt
}

// Error includes the remedy.
func (e *EngineError) Error() string {
	return e.Short() + ": start one (Debian, Ubuntu: apt-get install docker.io; systemctl start docker), " +
		"run as root or in group docker, or set DOCKER_HOST"
}

// Short leaves out the remedy.
func (e *EngineError) Short() string {
	why := e.Err
	if request := (*url.Error)(nil); errors.As(why, &request) {
		why = request.Err
	}
	if call := (*net.OpError)(nil); errors.As(why, &call) { // both wrappers repeat the address
		why = call.Err
	}
	return fmt.Sprintf("no Docker engine at %s (%v)", e.Host, why)
}

// Unwrap returns the class and the cause of the error.
func (e *EngineError) Unwrap() []error { return []error{cluster.ErrEnvironment, e.Err} }

// dial connects to the engine at host; empty: DOCKER_HOST, or the default. The caller
// closes it.
func dial(ctx context.Context, host string) (*engine, error) {
	options := []client.Opt{client.FromEnv}
	if host != "" {
		options = append(options, client.WithHost(host))
	}
	c, err := client.New(options...)
	if err != nil {
		return nil, &EngineError{Host: hostName(host), Err: err}
	}
	e := &engine{Client: c, addresses: map[string]netip.Addr{}}
	if err := e.ping(ctx); err != nil {
		_ = c.Close()
		return nil, &EngineError{Host: c.DaemonHost(), Err: err}
	}
	if e.pool, err = dockertest.NewPool(ctx, "", dockertest.WithMobyClient(e)); err != nil {
		_ = c.Close()
		return nil, &EngineError{Host: c.DaemonHost(), Err: err}
	}
	return e, nil
}

func hostName(host string) string {
	if host == "" {
		return os.Getenv("DOCKER_HOST")
	}
	return host
}

// Version is the version of the engine, such as "20.10.24". The error is an
// [*EngineError] if none replies.
func Version(ctx context.Context) (string, error) {
	version, _, err := Inspect(ctx, "")
	return version, err
}

// Inspect returns the engine's version, and whether it has the image (unless empty).
func Inspect(ctx context.Context, image string) (version string, has bool, err error) {
	e, err := dial(ctx, "")
	if err != nil {
		return "", false, err
	}
	defer e.Client.Close()
	ctx, cancel := context.WithTimeout(ctx, pingWait)
	defer cancel()
	if image != "" {
		_, missing := e.ImageInspect(ctx, image)
		has = missing == nil
	}
	version, err = e.version(ctx)
	return version, has, err
}

func (e *engine) version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pingWait)
	defer cancel()
	v, err := e.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return "", &EngineError{Host: e.DaemonHost(), Err: err}
	}
	return v.Version, nil
}

func (e *engine) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingWait)
	defer cancel()
	_, err := e.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	return err
}

// NetworkCreate creates the network with the subnet of setNetwork.
func (e *engine) NetworkCreate(
	ctx context.Context, name string, o client.NetworkCreateOptions,
) (client.NetworkCreateResult, error) {
	e.mu.Lock()
	if e.subnet.IsValid() {
		o.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: e.subnet}}}
	}
	e.mu.Unlock()
	return e.Client.NetworkCreate(ctx, name, o)
}

// ContainerCreate creates a container with a fixed address.
func (e *engine) ContainerCreate(
	ctx context.Context, o client.ContainerCreateOptions,
) (client.ContainerCreateResult, error) {
	e.mu.Lock()
	if addr, ok := e.addresses[o.Name]; ok {
		o.NetworkingConfig = &network.NetworkingConfig{
			EndpointsConfig: map[string]*network.EndpointSettings{e.net: fixed(addr)},
		}
	}
	e.mu.Unlock()
	return e.Client.ContainerCreate(ctx, o)
}

func fixed(addr netip.Addr) *network.EndpointSettings {
	return &network.EndpointSettings{IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: addr}}
}

// labeled selects objects with the label.
func labeled(name, value string) client.Filters {
	return client.Filters{}.Add("label", name+"="+value)
}

// labels are the labels of everything that a run creates.
func labels(run, ledger string) map[string]string {
	all := map[string]string{runLabel: run, ledgerLabel: ledger, machineLabel: machine()}
	maps.DeleteFunc(all, func(_, v string) bool { return v == "" })
	return all
}

// machine identifies this machine among the users of the same engine.
func machine() string {
	if id, err := os.ReadFile("/etc/machine-id"); err == nil && len(strings.TrimSpace(string(id))) > 0 {
		return strings.TrimSpace(string(id))
	}
	name, _ := os.Hostname()
	return name
}
