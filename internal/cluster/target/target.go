// Package target is a backend for servers that the harness did not start: a user's own Redis. It puts gates between
// the clients of a run and these servers, and can do nothing else to them: [Target] has no method that kills, stops,
// configures or empties a server, so a fault that needs one is refused. What the harness itself sends is in this
// package alone, and each command either reads, or removes a key with the prefix of the run.
//
// Read [Open] first. A client connects to a gate on a loopback address, without TLS and without a password; the gate
// encrypts and authenticates. Gates refuse connections of other users of the machine. Servers announce their own
// addresses (MOVED, CLUSTER SLOTS, SENTINEL): client.Endpoints.Gates says which gate stands for which.
package target

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"

	"github.com/lockchaos/lockchaos/topology"

	"github.com/redis/go-redis/v9/logging"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
)

// Config is which servers, and how to reach them.
type Config struct {
	Address Address
	Secrets Secrets
	TLS     *tls.Config // for Address.TLS; nil: the certificates of the system
	Prefix  string      // of every key of the run; see [cluster.NewPrefix]
	// Stranger is called for each connection that no client of the run has opened; nil: it is not.
	Stranger func(from, gate netip.AddrPort, to string)
}

// Target is the servers and the gates in front of them. It implements [cluster.Cluster], [cluster.Links],
// [cluster.Witness] and [cluster.Inventory], and nothing more; see [Failover].
type Target struct {
	address Address
	secrets Secrets
	tls     *tls.Config
	prefix  string

	fronts
	topology cluster.Topology

	close    sync.Once
	closeErr error
}

var (
	_ cluster.Cluster   = (*Target)(nil)
	_ cluster.Links     = (*Target)(nil)
	_ cluster.Witness   = (*Target)(nil)
	_ cluster.Inventory = (*Target)(nil)
)

// Discover asks the servers which there are. The caller closes the target, and calls OpenGates before clients do.
// Errors wrap [cluster.ErrEnvironment].
func Discover(ctx context.Context, cfg Config) (*Target, error) {
	t := &Target{address: cfg.Address, secrets: cfg.Secrets, prefix: cfg.Prefix}
	t.stranger = cfg.Stranger
	if cfg.Address.TLS {
		if t.tls = cfg.TLS; t.tls == nil {
			t.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	logging.Disable() // go-redis would print every failed connection
	if err := t.discover(ctx); err != nil {
		t.closeConnections()
		return nil, fmt.Errorf("%w: target: %w", cluster.ErrEnvironment, err)
	}
	return t, nil
}

// Topology describes the servers that were found.
func (t *Target) Topology() cluster.Topology { return t.topology }

// Endpoints is how client i reaches the servers through the gates.
func (t *Target) Endpoints(i int) topology.Endpoints {
	e := topology.Endpoints{Kind: t.topology.Kind, Source: process.ClientAddr(i).String()}
	if t.topology.Kind != cluster.Sentinel {
		for _, s := range t.nodes[:t.topology.MasterCount()] {
			e.Addrs = append(e.Addrs, s.gate.Addr())
		}
	}
	for _, s := range t.sentinels {
		e.Sentinels = append(e.Sentinels, s.gate.Addr())
	}
	if t.topology.Kind == cluster.Sentinel {
		e.MasterName = t.address.Master
	}
	if t.topology.Kind == cluster.Sentinel || t.topology.Kind == cluster.Sharded {
		e.Gates = map[string]string{}
		for _, s := range t.all() {
			e.Gates[s.addr] = s.gate.Addr()
		}
	}
	return e
}

// Sample reads a node's role and who holds keys of the run, past the gates.
func (t *Target) Sample(ctx context.Context, node string, keys []string) history.Sample {
	s, err := t.node(node)
	if err != nil {
		return history.Sample{Node: node}
	}
	ctx, cancel := context.WithTimeout(ctx, sampleWait)
	defer cancel()
	return cluster.SampleNode(func(commands ...[]string) ([]any, error) { return s.ask(ctx, commands...) },
		t.topology.Kind, node, keys)
}

// Version is the version that a server reports, such as "7.0.15"; "unknown" if the user may not ask (INFO).
func (t *Target) Version(ctx context.Context) string {
	reply, err := t.nodes[0].one(ctx, "INFO", "server")
	if err != nil {
		return "unknown"
	}
	_, rest, found := strings.Cut(fmt.Sprint(reply), "redis_version:")
	if !found {
		return "unknown"
	}
	version, _, _ := strings.Cut(rest, "\r\n")
	return version
}

// Close ends every connection of the run, then removes its keys. ctx does not shorten it, because remaining keys would
// stay. It may be called twice.
func (t *Target) Close(context.Context) error {
	t.close.Do(func() {
		closed := t.closeGates()
		ctx, cancel := context.WithTimeout(context.Background(), cleanWait)
		defer cancel()
		_, err := t.RemoveKeys(ctx)
		t.closeConnections()
		t.closeErr = errors.Join(closed, err)
	})
	return t.closeErr
}

func (t *Target) closeConnections() {
	for _, s := range t.all() {
		_ = s.own.Close()
	}
}

// hostPort joins the two words with which servers announce an address.
func hostPort(host, port any) string { return net.JoinHostPort(fmt.Sprint(host), fmt.Sprint(port)) }
