package process

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/gate"
)

// Third octets of 127.0.x.y, see the package comment.
const (
	nodeNet         = 1
	nodeGateNet     = 2
	sentinelNet     = 3
	clientNet       = 4
	sentinelGateNet = 5

	clientsPerNet = 250
	claimAddr     = 250 // 127.0.2.250 belongs to no server; the run that listens there owns the port
)

// Ports are below the range from which Linux chooses ports of outgoing connections (from 32768 on).
const (
	lowPort    = 10000
	portRange  = 20000
	portsTried = 200
)

// ErrPortTaken: another program took the port after it was chosen. A retry will do.
var ErrPortTaken = errors.New("port is taken")

// serverAddr is where the server itself listens and connects from.
func (h Host) serverAddr() netip.Addr { return h.loopback(nodeNet, sentinelNet) }

// gateAddr is where its gate listens, the only address that is announced.
func (h Host) gateAddr() netip.Addr { return h.loopback(nodeGateNet, sentinelGateNet) }

func (h Host) loopback(ofNodes, ofSentinels byte) netip.Addr {
	if h.Sentinel {
		ofNodes = ofSentinels
	}
	return netip.AddrFrom4([4]byte{127, 0, ofNodes, byte(h.I)})
}

// ClientAddr is where a client (from 0) connects from.
func ClientAddr(client int) netip.Addr {
	net, i := client/clientsPerNet, byte(client%clientsPerNet+1)
	if net == 0 {
		return netip.AddrFrom4([4]byte{127, 0, clientNet, i})
	}
	return netip.AddrFrom4([4]byte{127, clientNet, byte(net), i})
}

// identify names the caller at an address that has connected to a gate of server to.
func (c *Cluster) identify(from, gate netip.AddrPort, to string) string {
	for _, s := range slices.Concat(c.nodes, c.sentinels) {
		if s.location.IP == from.Addr() {
			return s.name
		}
	}
	name := ClientAt(from.Addr())
	if name == cluster.UnknownClient && c.stranger != nil {
		c.stranger(from, gate, to)
	}
	return name
}

// ClientAt names the client at addr; [cluster.UnknownClient] if none has it.
func ClientAt(addr netip.Addr) string {
	if !addr.Is4() {
		return cluster.UnknownClient
	}
	b := addr.As4()
	switch {
	case b[0] != 127:
	case b[1] == 0 && b[2] == clientNet && b[3] > 0:
		return cluster.ClientName(int(b[3]) - 1)
	case b[1] == clientNet && b[3] > 0:
		return cluster.ClientName(int(b[2])*clientsPerNet + int(b[3]) - 1)
	}
	return cluster.UnknownClient
}

// claim finds a port that is free on every address of the run. It also locks the
// port against other runs: each run first listens on the same address.
func (c *Cluster) claim(first int) error {
	var err error
	for try := range portsTried {
		c.port = Port(first, try)
		c.launcher = &loopback{program: c.program, port: c.port, ledger: c.ledger}
		err = c.claimPort()
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w (servers need a free port from %d on and the loopback addresses 127.0.1.1 to "+
			"127.0.5.15, which Linux has by default)", cluster.ErrEnvironment, err, lowPort)
	}
	return nil
}

// Port is the port of a given try (from 0). Runs with different first try different ports first.
func Port(first, try int) int { return lowPort + (first*31+try*7)%portRange }

func (c *Cluster) claimPort() (err error) {
	claim := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, nodeGateNet, claimAddr}), uint16(c.port))
	if c.claimed, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(claim)); err != nil {
		return err
	}
	if err = c.openGates(); err == nil {
		err = c.probe()
	}
	if err != nil {
		c.releasePort()
	}
	return err
}

// probe checks that the addresses that the servers will listen on are free.
func (c *Cluster) probe() error {
	for _, s := range slices.Concat(c.nodes, c.sentinels) {
		ports := []int{s.location.Port}
		if s.bus != nil || s.peers != nil {
			ports = append(ports, s.location.BusPort)
		}
		if s.peers != nil {
			ports = append(ports, s.location.electionPort())
		}
		for i := range s.more {
			ports = append(ports, s.location.Port+1+i)
		}
		for _, port := range ports {
			l, err := net.Listen("tcp", s.location.at(port))
			if err != nil {
				return err
			}
			if err := l.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// openGates sets up the servers of the topology, each with its directory and open gates.
func (c *Cluster) openGates() error {
	c.nodes, c.sentinels = nil, nil
	for _, h := range hostsOf(c.topology) {
		list := &c.nodes
		if h.Sentinel {
			list = &c.sentinels
		}
		*list = append(*list, c.newServer(h))
	}
	for _, s := range slices.Concat(c.nodes, c.sentinels) {
		if err := c.openGate(s); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) openGate(s *server) (err error) {
	if err := os.MkdirAll(s.disk, 0o755); err != nil {
		return err
	}
	if err := s.checkSocket(); err != nil {
		return err
	}
	p := s.location
	if c.topology.Kind == cluster.Command {
		return c.openPortGates(s)
	}
	if s.gate, err = c.gateTo(s.name, p.Gate, p.target()); err != nil {
		return err
	}
	switch c.topology.Kind {
	case cluster.ZooKeeper:
		return c.openPeerGates(s)
	case cluster.Etcd:
		return c.openMemberGate(s)
	case cluster.Postgres:
		return c.openReplicationGate(s)
	case cluster.Sharded:
	default:
		return nil
	}
	s.bus, err = c.gateTo(s.name, p.BusGate, p.at(p.BusPort))
	return err
}

func (c *Cluster) gateTo(name string, listen netip.AddrPort, target string) (*gate.Gate, error) {
	identify := func(from netip.AddrPort) string { return c.identify(from, listen, name) }
	return gate.Open(gate.Config{Listen: listen.String(), Target: target, Identify: identify})
}

func (c *Cluster) releasePort() {
	for _, s := range slices.Concat(c.nodes, c.sentinels) {
		_ = s.eachGate((*gate.Gate).Close)
	}
	c.nodes, c.sentinels = nil, nil
	if c.claimed != nil {
		_ = c.claimed.Close()
	}
}

// checkEnd checks that name is a possible end of a link.
func (c *Cluster) checkEnd(name string) error {
	if name == cluster.Any || name == cluster.UnknownClient {
		return nil
	}
	if _, ok := cluster.ClientNumber(name); ok {
		return nil
	}
	_, err := c.server(name)
	return err
}
