package process

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// namespaces is a launcher that runs every server in a network namespace of its
// own, connected by a pair of virtual Ethernet devices (veth(4)) to a bridge, which
// has this machine's address in their network. The names of devices and namespaces
// begin with a prefix that is unique to the run.
type namespaces struct {
	program   string
	name      string // of the bridge, and the prefix of all other names
	subnet    netip.Prefix
	gateway   netip.Addr
	firstPort int
	ledger    *ledger.Ledger
	created   bool // something may exist
}

const (
	ipWait      = 20 * time.Second // for all ip commands of a start, which take 0.1 s
	subnetTried = 50
	subnetBits  = 24

	netnsDir = "/run/netns/"
)

// MissingNetwork describes the missing parts of this machine for servers that can be disconnected from their network;
// "": none.
func MissingNetwork() string {
	if runtime.GOOS != "linux" {
		return "network namespaces need Linux"
	}
	if !mayMakeNetworks() {
		return "network namespaces, in which servers can be disconnected, need root with the capabilities " +
			"NET_ADMIN and SYS_ADMIN; or use backend docker"
	}
	for _, name := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Sprintf("network namespaces need %s (%v): "+
				"Debian, Ubuntu: apt-get install iproute2 util-linux; or use backend docker", name, err)
		}
	}
	return ""
}

// mayMakeNetworks reports whether this process has the capabilities (capabilities(7))
// that devices and named namespaces need: in a container, root may lack them.
func mayMakeNetworks() bool {
	const netAdmin, sysAdmin = 12, 21
	const need = 1<<netAdmin | 1<<sysAdmin
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(status), "CapEff:")
	line, _, _ := strings.Cut(rest, "\n")
	has, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return err == nil && has&need == need
}

// claimNetwork creates a network of namespaces and opens the gates in it.
func (c *Cluster) claimNetwork(ctx context.Context, first int) error {
	if why := MissingNetwork(); why != "" {
		return fmt.Errorf("%w: %s", cluster.ErrEnvironment, why)
	}
	unique := sha1.Sum(fmt.Appendf(nil, "%s %d %d", c.data, os.Getpid(), first))
	c.namespaces = &namespaces{program: c.program, name: fmt.Sprintf("lc%x", unique[:4]), ledger: c.ledger}
	c.launcher = c.namespaces
	if err := c.namespaces.create(ctx, c.topology, first); err != nil {
		return fmt.Errorf("creating the network of the servers: %w", err)
	}
	for try := range portsTried {
		c.namespaces.firstPort = Port(first, try)
		err := c.openGates()
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		c.releasePort()
	}
	return fmt.Errorf("%w: no free ports at %v from %d on", cluster.ErrEnvironment, c.namespaces.gateway, lowPort)
}

// create creates the bridge, the namespaces and their devices; each is recorded in the ledger first.
func (n *namespaces) create(ctx context.Context, t cluster.Topology, first int) error {
	var err error
	if n.subnet, err = freeSubnet(first); err != nil {
		return err
	}
	n.gateway = n.subnet.Addr().Next()
	n.created = true
	if err := n.ledger.Bridge(n.name); err != nil {
		return err
	}
	host := []string{
		"link add " + n.name + " type bridge",
		fmt.Sprintf("addr add %s/%d dev %s", n.gateway, subnetBits, n.name),
		"link set " + n.name + " up",
	}
	hosts := hostsOf(t)
	for _, h := range hosts {
		ns := n.nameOf(h)
		if err := n.ledger.Namespace(ns); err != nil {
			return err
		}
		host = append(host, "netns add "+ns, "link add "+ns+" type veth peer name eth0 netns "+ns,
			"link set "+ns+" master "+n.name, "link set "+ns+" up")
	}
	ctx, cancel := context.WithTimeout(ctx, ipWait)
	defer cancel()
	if err := ip(ctx, host); err != nil {
		return err
	}
	for _, h := range hosts {
		inside := []string{
			"link set lo up", fmt.Sprintf("addr add %s/%d dev eth0", n.Locate(h).IP, subnetBits), "link set eth0 up",
		}
		if err := ip(ctx, inside, "-n", n.nameOf(h)); err != nil {
			return err
		}
	}
	return nil
}

// hostsOf are the servers of a topology.
func hostsOf(t cluster.Topology) (all []Host) {
	for i := range t.Size() {
		all = append(all, Host{I: i + 1})
	}
	for i := range t.Sentinels {
		all = append(all, Host{Sentinel: true, I: i + 1})
	}
	return all
}

// freeSubnet is a subnet that overlaps with none of this machine's networks.
func freeSubnet(first int) (netip.Prefix, error) {
	taken, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("listing this machine's networks: %w", err)
	}
	for try := range subnetTried {
		word := uint16(first*31 + try*7)
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(192 + word>>8&63), byte(word), 0}), subnetBits)
		if !slices.ContainsFunc(taken, func(addr net.Addr) bool {
			other, err := netip.ParsePrefix(addr.String())
			return err == nil && other.Masked().Overlaps(subnet)
		}) {
			return subnet, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("%w: no free subnet in 10.192.0.0/10", cluster.ErrEnvironment)
}

// ip runs lines of ip(8) in one process, up to the first that fails.
func ip(ctx context.Context, lines []string, options ...string) error {
	cmd := exec.CommandContext(ctx, "ip", append(options, "-batch", "-")...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %w: %s", strings.Join(options, " "), cluster.ErrEnvironment, err,
			strings.TrimSpace(string(out)))
	}
	return nil
}

func (n *namespaces) nameOf(h Host) string { return n.name + h.String() }

// Locate gives every server an address in the network, and its gates ports at the bridge.
func (n *namespaces) Locate(h Host) Location {
	p := InSubnet(n.subnet, n.gateway, n.firstPort, h)
	p.Socket = "sock"
	return p
}

// Launch starts a child process in its namespace.
func (n *namespaces) Launch(_ context.Context, s LaunchSpec) (Process, error) {
	args := append([]string{"--net=" + netnsDir + n.nameOf(s.Host), n.program}, s.Args...)
	return startChild(n.ledger, child.Spec{
		Path: "nsenter", Args: args, Dir: s.Dir, Env: append(os.Environ(), s.Env...), Stderr: s.Log,
	})
}

// close removes the bridge, the namespaces and their devices, as far as they exist.
func (n *namespaces) close(t cluster.Topology) error {
	if n == nil || !n.created {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), ipWait)
	defer cancel()
	var errs []error
	for _, h := range hostsOf(t) {
		_, err := ledger.RemoveNetwork(ctx, n.nameOf(h))
		errs = append(errs, err)
	}
	_, err := ledger.RemoveNetwork(ctx, n.name)
	return errors.Join(append(errs, err)...)
}

// Disconnect removes the device of a node or Sentinel from the bridge: packets in
// both directions are lost, and neither side sees its link go down. The cluster must
// have been started with [cluster.Requirements.Network].
func (c *Cluster) Disconnect(ctx context.Context, node string) error {
	return c.with("disconnecting", node, func(s *server) error { return c.setLink(ctx, s, "nomaster") })
}

// Reconnect adds it to the bridge again.
func (c *Cluster) Reconnect(ctx context.Context, node string) error {
	return c.with("reconnecting", node, func(s *server) error { return c.setLink(ctx, s, "master") })
}

func (c *Cluster) setLink(ctx context.Context, s *server, how string) error {
	if c.namespaces == nil {
		return fmt.Errorf("%w: the servers were started without a network of their own", cluster.ErrEnvironment)
	}
	if how == "master" {
		how += " " + c.namespaces.name
	}
	return ip(ctx, []string{"link set " + c.namespaces.nameOf(s.Host) + " " + how})
}
