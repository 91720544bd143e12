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
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/lockchaos/lockchaos/topology"

	"github.com/redis/go-redis/v9/logging"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/gate"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
)

// Config is which servers, and how to reach them.
type Config struct {
	Address Address
	Secrets Secrets
	TLS     *tls.Config // for Address.TLS; nil: the certificates of the system
	Prefix  string      // of every key of the run; see [NewPrefix]
	// Stranger is called for each connection that no client of the run has opened; nil: it is not.
	Stranger func(from, gate netip.AddrPort, to string)
}

// Target is the servers and the gates in front of them. It implements [cluster.Cluster], [cluster.Links],
// [cluster.Witness] and [cluster.Inventory], and nothing more; see [Failover].
type Target struct {
	address  Address
	secrets  Secrets
	tls      *tls.Config
	prefix   string
	stranger func(from, gate netip.AddrPort, to string)

	topology  cluster.Topology
	nodes     []*server
	sentinels []*server

	close    sync.Once
	closeErr error
}

var (
	_ cluster.Cluster   = (*Target)(nil)
	_ cluster.Links     = (*Target)(nil)
	_ cluster.Witness   = (*Target)(nil)
	_ cluster.Inventory = (*Target)(nil)
)

// Discover asks the servers which there are. The caller closes the target, and calls Gates before clients connect.
// Errors wrap [cluster.ErrEnvironment].
func Discover(ctx context.Context, cfg Config) (*Target, error) {
	t := &Target{address: cfg.Address, secrets: cfg.Secrets, prefix: cfg.Prefix, stranger: cfg.Stranger}
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

// OpenGates opens a gate in front of every server.
func (t *Target) OpenGates() error {
	for i, s := range slices.Concat(t.nodes, t.sentinels) {
		if err := t.openGate(i+1, s); err != nil {
			return fmt.Errorf("%w: %w", cluster.ErrEnvironment, err)
		}
	}
	return nil
}

// gateNet is the third byte of the gates' addresses: 127.0.6.i.
const gateNet = 6

func (t *Target) openGate(i int, s *server) (err error) {
	listen := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, gateNet, byte(i)}), 0)
	s.gate, err = gate.Open(gate.Config{
		Listen: listen.String(), Dial: s.dial,
		Identify: func(from netip.AddrPort) string { return process.ClientAt(from.Addr()) },
		Admit: func(from, at netip.AddrPort) bool {
			uid, ok := child.SocketUser(from, at) // a gate authenticates: its users have the rights of the run
			if process.ClientAt(from.Addr()) == cluster.UnknownClient && t.stranger != nil {
				t.stranger(from, at, s.name)
			}
			return ok && uid == os.Getuid()
		},
	})
	return err
}

// Topology describes the servers that were found.
func (t *Target) Topology() cluster.Topology { return t.topology }

// Nodes are the data servers, under their own addresses.
func (t *Target) Nodes() []cluster.Node {
	nodes := make([]cluster.Node, len(t.nodes))
	for i, s := range t.nodes {
		nodes[i] = cluster.Node{Name: s.name, Addr: s.addr}
	}
	return nodes
}

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
		for _, s := range slices.Concat(t.nodes, t.sentinels) {
			e.Gates[s.addr] = s.gate.Addr()
		}
	}
	return e
}

// errNoGate: the harness has no gate between these ends, such as two servers.
var errNoGate = errors.New("there is no gate between these ends: the servers are not the harness's own")

// gates are the gates in front of link.To.
func (t *Target) gates(link cluster.Link) (all []*gate.Gate, err error) {
	if _, isClient := cluster.ClientNumber(link.From); !isClient && link.From != cluster.Any &&
		link.From != cluster.UnknownClient {
		if link.To == cluster.Any { // the other half of all traffic around a node
			return nil, nil
		}
		return nil, fmt.Errorf("%s to %s: %w", link.From, link.To, errNoGate)
	}
	for _, s := range slices.Concat(t.nodes, t.sentinels) {
		if link.To == cluster.Any || link.To == s.name {
			all = append(all, s.gate)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: %w", link.To, cluster.ErrNoNode)
	}
	return all, nil
}

// SetRule sets the gates between clients and servers.
func (t *Target) SetRule(link cluster.Link, dir cluster.Direction, rule cluster.Rule) error {
	gates, err := t.gates(link)
	for _, g := range gates {
		g.SetRule(link.From, dir, rule)
	}
	return err
}

// Traffic is the sum over the gates of every matching link.
func (t *Target) Traffic(link cluster.Link, dir cluster.Direction) (sum cluster.Traffic, err error) {
	gates, err := t.gates(link)
	for _, g := range gates {
		sum.Add(g.Traffic(link.From, dir))
	}
	return sum, err
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

func (t *Target) node(name string) (*server, error) {
	for _, s := range t.nodes {
		if s.name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, cluster.ErrNoNode)
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
		var errs []error
		for _, s := range slices.Concat(t.nodes, t.sentinels) {
			if s.gate != nil {
				errs = append(errs, s.gate.Close())
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), cleanWait)
		defer cancel()
		_, err := t.RemoveKeys(ctx)
		t.closeConnections()
		t.closeErr = errors.Join(append(errs, err)...)
	})
	return t.closeErr
}

func (t *Target) closeConnections() {
	for _, s := range slices.Concat(t.nodes, t.sentinels) {
		_ = s.own.Close()
	}
}

// hostPort joins the two words with which servers announce an address.
func hostPort(host, port any) string { return net.JoinHostPort(fmt.Sprint(host), fmt.Sprint(port)) }
