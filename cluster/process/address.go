package process

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/lockchaos/lockchaos/cluster"
	"github.com/lockchaos/lockchaos/cluster/gate"
)

// Third octets of 127.0.x.y, see the package comment.
const (
	nodeNet         = 1
	nodeGateNet     = 2
	sentinelNet     = 3
	clientNet       = 4
	sentinelGateNet = 5

	clientsPerNet = 250
	claimHost     = 250 // 127.0.2.250 is nobody's; whoever listens there has the port
)

// Ports are chosen below the range from which Linux takes the ports of outgoing connections (from 32768 on).
const (
	lowPort   = 10000
	portRange = 20000
	portTried = 200
)

// Unknown is who calls from an address that belongs to nobody in the run.
const Unknown = "client:?"

// errPortTaken says that somebody has taken the port after it was chosen.
var errPortTaken = errors.New("port is taken")

// host is a server's place: node or Sentinel number i, from 1.
type host struct {
	sentinel bool
	i        int
}

func (h host) String() string {
	if h.sentinel {
		return fmt.Sprintf("s%d", h.i)
	}
	return fmt.Sprintf("n%d", h.i)
}

// real is where the server listens and connects from.
func (h host) real() netip.Addr {
	if h.sentinel {
		return netip.AddrFrom4([4]byte{127, 0, sentinelNet, byte(h.i)})
	}
	return netip.AddrFrom4([4]byte{127, 0, nodeNet, byte(h.i)})
}

// known is where its gate listens, the address that everybody is told.
func (h host) known() netip.Addr {
	if h.sentinel {
		return netip.AddrFrom4([4]byte{127, 0, sentinelGateNet, byte(h.i)})
	}
	return netip.AddrFrom4([4]byte{127, 0, nodeGateNet, byte(h.i)})
}

// clientAddr is where a client (from 0) connects from.
func clientAddr(client int) netip.Addr {
	net, i := client/clientsPerNet, byte(client%clientsPerNet+1)
	if net == 0 {
		return netip.AddrFrom4([4]byte{127, 0, clientNet, i})
	}
	return netip.AddrFrom4([4]byte{127, clientNet, byte(net), i})
}

// identify names whoever calls from addr.
func identify(addr netip.Addr) string {
	b := addr.As4()
	switch {
	case b[1] == 0 && b[2] == nodeNet:
		return host{i: int(b[3])}.String()
	case b[1] == 0 && b[2] == sentinelNet:
		return host{sentinel: true, i: int(b[3])}.String()
	case b[1] == 0 && b[2] == clientNet && b[3] > 0:
		return fmt.Sprintf("client:%d", b[3]-1)
	case b[1] == clientNet && b[3] > 0:
		return fmt.Sprintf("client:%d", int(b[2])*clientsPerNet+int(b[3])-1)
	}
	return Unknown
}

// claim finds a port that is free on every address of the run, and keeps other
// runs away from it: each listens on the same address first, as long as it lives.
func (c *Cluster) claim(first int) error {
	var err error
	for try := range portTried {
		c.port = lowPort + (first*31+try*7)%portRange
		err = c.claimPort()
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w (servers need a free port from %d on and the addresses 127.0.1.1 to 127.0.5.15, "+
			"which Linux has of its own accord)", cluster.ErrEnvironment, err, lowPort)
	}
	return nil
}

func (c *Cluster) claimPort() (err error) {
	c.nodes, c.sentinels = nil, nil
	defer func() {
		if err != nil {
			c.releasePort()
		}
	}()
	claim := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, nodeGateNet, claimHost}), uint16(c.port))
	if c.claimed, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(claim)); err != nil {
		return err
	}
	for i := range c.topology.Size() {
		s := c.newServer(host{i: i + 1})
		if err := c.openGate(s); err != nil {
			return err
		}
		c.nodes = append(c.nodes, s)
	}
	for i := range c.topology.Sentinels {
		s := c.newServer(host{sentinel: true, i: i + 1})
		if err := c.openGate(s); err != nil {
			return err
		}
		c.sentinels = append(c.sentinels, s)
	}
	return nil
}

func (c *Cluster) openGate(s *server) (err error) {
	if err := os.MkdirAll(s.disk, 0o755); err != nil {
		return err
	}
	if s.gate, err = c.gateTo(s, c.port); err != nil || c.topology.Kind != cluster.Sharded {
		return err
	}
	s.bus, err = c.gateTo(s, c.port+1)
	return errors.Join(err, closeIf(err, s.gate))
}

// gateTo opens a gate in front of one port of s, which nobody else may have.
func (c *Cluster) gateTo(s *server, port int) (*gate.Gate, error) {
	target := netip.AddrPortFrom(s.real(), uint16(port)).String()
	probe, err := net.Listen("tcp", target)
	if err != nil {
		return nil, err
	}
	if err := probe.Close(); err != nil {
		return nil, err
	}
	listen := netip.AddrPortFrom(s.known(), uint16(port)).String()
	return gate.Open(gate.Config{Listen: listen, Target: target, Identify: identify})
}

func closeIf(err error, g *gate.Gate) error {
	if err == nil {
		return nil
	}
	return g.Close()
}

func (c *Cluster) releasePort() {
	for _, s := range slices.Concat(c.nodes, c.sentinels) {
		_ = s.closeGates()
	}
	c.nodes, c.sentinels = nil, nil
	if c.claimed != nil {
		_ = c.claimed.Close()
	}
}

// checkEnd says whether name is a possible end of a link.
func (c *Cluster) checkEnd(name string) error {
	if name == cluster.Any || name == Unknown {
		return nil
	}
	if number, ok := strings.CutPrefix(name, "client:"); ok {
		if n, err := strconv.Atoi(number); err == nil && n >= 0 {
			return nil
		}
	}
	_, err := c.server(name)
	return err
}
