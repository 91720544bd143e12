package target

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/gate"
	"github.com/lockchaos/lockchaos/internal/cluster/process"
)

// fronts are servers that the run did not start, and the gates in front of them.
type fronts struct {
	nodes     []*server
	sentinels []*server
	stranger  func(from, gate netip.AddrPort, to string)
}

// all are the servers, nodes first.
func (f *fronts) all() []*server { return slices.Concat(f.nodes, f.sentinels) }

// OpenGates opens a gate in front of every server.
func (f *fronts) OpenGates() error {
	for i, s := range f.all() {
		if err := f.openGate(i+1, s); err != nil {
			return fmt.Errorf("%w: %w", cluster.ErrEnvironment, err)
		}
	}
	return nil
}

// gateNet is the third byte of the gates' addresses: 127.0.6.i.
const gateNet = 6

func (f *fronts) openGate(i int, s *server) (err error) {
	listen := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, gateNet, byte(i)}), 0)
	s.gate, err = gate.Open(gate.Config{
		Listen: listen.String(), Dial: s.dial,
		Identify: func(from netip.AddrPort) string { return process.ClientAt(from.Addr()) },
		Admit: func(from, at netip.AddrPort) bool {
			uid, ok := child.SocketUser(from, at) // a gate authenticates: its users have the rights of the run
			if process.ClientAt(from.Addr()) == cluster.UnknownClient && f.stranger != nil {
				f.stranger(from, at, s.name)
			}
			return ok && uid == os.Getuid()
		},
	})
	return err
}

// Nodes are the data servers, under their own addresses.
func (f *fronts) Nodes() []cluster.Node {
	nodes := make([]cluster.Node, len(f.nodes))
	for i, s := range f.nodes {
		nodes[i] = cluster.Node{Name: s.name, Addr: s.addr}
	}
	return nodes
}

// errNoGate: the harness has no gate between these ends, such as two servers.
var errNoGate = errors.New("there is no gate between these ends: the servers are not the harness's own")

// gates are the gates in front of link.To.
func (f *fronts) gates(link cluster.Link) (all []*gate.Gate, err error) {
	if _, isClient := cluster.ClientNumber(link.From); !isClient && link.From != cluster.Any &&
		link.From != cluster.UnknownClient {
		if link.To == cluster.Any { // the other half of all traffic around a node
			return nil, nil
		}
		return nil, fmt.Errorf("%s to %s: %w", link.From, link.To, errNoGate)
	}
	for _, s := range f.all() {
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
func (f *fronts) SetRule(link cluster.Link, dir cluster.Direction, rule cluster.Rule) error {
	gates, err := f.gates(link)
	for _, g := range gates {
		g.SetRule(link.From, dir, rule)
	}
	return err
}

// Traffic is the sum over the gates of every matching link.
func (f *fronts) Traffic(link cluster.Link, dir cluster.Direction) (sum cluster.Traffic, err error) {
	gates, err := f.gates(link)
	for _, g := range gates {
		sum.Add(g.Traffic(link.From, dir))
	}
	return sum, err
}

func (f *fronts) node(name string) (*server, error) {
	for _, s := range f.nodes {
		if s.name == name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, cluster.ErrNoNode)
}

// closeGates ends all connections of clients.
func (f *fronts) closeGates() error {
	var errs []error
	for _, s := range f.all() {
		if s.gate != nil {
			errs = append(errs, s.gate.Close())
		}
	}
	return errors.Join(errs...)
}
