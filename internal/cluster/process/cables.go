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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// namespaces is a launcher with which every server is a process in a network
// namespace of its own, with a cable (a pair of virtual Ethernet devices) to a
// bridge that is this machine's address in their network. Names of devices and
// namespaces begin with a word of the run's own.
type namespaces struct {
	program   string
	name      string // of the bridge, and what all other names begin with
	subnet    netip.Prefix
	gateway   netip.Addr
	firstPort int
	ledger    *ledger.Ledger
	created   bool // something may exist
}

const (
	ipWait      = 20 * time.Second // for all of the ip commands of a start; they take 0.1 s
	subnetTried = 50
	subnetBits  = 24

	netnsFolder = "/run/netns/"
)

// MissingCables is what this machine lacks for servers that can be taken off
// their network; "" if nothing.
func MissingCables() string {
	if runtime.GOOS != "linux" {
		return "network namespaces need Linux"
	}
	if !mayMakeNetworks() {
		return "servers in network namespaces, which can be taken off their network, need root with the capabilities " +
			"NET_ADMIN and SYS_ADMIN; or take backend docker"
	}
	for _, name := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Sprintf("%s is not here (%v), which makes network namespaces: "+
				"Debian, Ubuntu: apt-get install iproute2 util-linux; or take backend docker", name, err)
		}
	}
	return ""
}

// mayMakeNetworks says whether this process has the capabilities (capabilities(7))
// that devices, and namespaces with a name, need: in a container root may lack them.
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

// claimCables makes a network of namespaces and opens the gates in it.
func (c *Cluster) claimCables(ctx context.Context, first int) error {
	if why := MissingCables(); why != "" {
		return fmt.Errorf("%w: %s", cluster.ErrEnvironment, why)
	}
	unique := sha1.Sum(fmt.Appendf(nil, "%s %d %d", c.data, os.Getpid(), first))
	c.cables = &namespaces{program: c.program, name: fmt.Sprintf("lc%x", unique[:4]), ledger: c.ledger}
	c.launcher = c.cables
	if err := c.cables.lay(ctx, c.topology, first); err != nil {
		return fmt.Errorf("laying the cables of the servers: %w", err)
	}
	for try := range portTried {
		c.cables.firstPort = Port(first, try)
		err := c.openGates()
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		c.releasePort()
	}
	return fmt.Errorf("%w: no free ports at %v from %d on", cluster.ErrEnvironment, c.cables.gateway, lowPort)
}

// lay makes bridge, namespaces and cables, each written down before.
func (n *namespaces) lay(ctx context.Context, t cluster.Topology, first int) error {
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

// hostsOf is every server of a topology.
func hostsOf(t cluster.Topology) (all []Host) {
	for i := range t.Size() {
		all = append(all, Host{I: i + 1})
	}
	for i := range t.Sentinels {
		all = append(all, Host{Sentinel: true, I: i + 1})
	}
	return all
}

// freeSubnet is a network of which this machine knows nothing.
func freeSubnet(first int) (netip.Prefix, error) {
	taken, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("looking at this machine's networks: %w", err)
	}
	for try := range subnetTried {
		word := uint16(first*31 + try*7)
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(192 + word>>8&63), byte(word), 0}), subnetBits)
		free := true
		for _, addr := range taken {
			if other, err := netip.ParsePrefix(addr.String()); err == nil && other.Masked().Overlaps(subnet) {
				free = false
			}
		}
		if free {
			return subnet, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("%w: this machine is in every network from 10.192.0.0 on", cluster.ErrEnvironment)
}

// ip runs lines of the command of that name, all of them or none of what follows the first that fails.
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

// Location gives every server an address in the network, and its gates ports at the bridge.
func (n *namespaces) Locate(h Host) Location {
	p := InSubnet(n.subnet, n.gateway, n.firstPort, h)
	p.Socket = "sock"
	return p
}

// LaunchSpec starts a child process in its namespace.
func (n *namespaces) Launch(_ context.Context, s LaunchSpec) (Process, error) {
	args := append([]string{"--net=" + netnsFolder + n.nameOf(s.Host), n.program}, s.Args...)
	return launch(n.ledger, child.Spec{
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

// Disconnect takes the cable of a node or Sentinel out of the bridge: what either end
// sends is lost, and neither sees the cable go. [cluster.Requirements.Network] has to
// be given at the start.
func (c *Cluster) Disconnect(ctx context.Context, node string) error {
	return c.cable(ctx, "unplugging", node, "nomaster")
}

// Reconnect puts it back.
func (c *Cluster) Reconnect(ctx context.Context, node string) error {
	master := ""
	if c.cables != nil {
		master = "master " + c.cables.name
	}
	return c.cable(ctx, "plugging in", node, master)
}

func (c *Cluster) cable(ctx context.Context, what, node, how string) error {
	s, err := c.server(node)
	if err == nil && c.cables == nil {
		err = fmt.Errorf("%s: %w: the servers were started without cables", node, cluster.ErrEnvironment)
	}
	if err == nil {
		err = ip(ctx, []string{"link set " + c.cables.nameOf(s.Host) + " " + how})
	}
	if err != nil {
		return fmt.Errorf("%s %w", what, err)
	}
	return nil
}
