package process

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

// Launcher starts servers at addresses that it chooses. [Start] uses processes on
// loopback addresses; package docker has a launcher for containers, see
// [StartWith]. Everything else about real servers - configuration, readiness, gates,
// samples, Sentinels, shards - does not depend on the launcher.
type Launcher interface {
	// Locate chooses the location of server h. It is called once, before any launch.
	Locate(h Host) Location
	// Launch starts the server, and restarts it after it has exited. It is called concurrently.
	Launch(ctx context.Context, l LaunchSpec) (Process, error)
}

// Host is a server of a cluster: node or Sentinel number I, from 1.
type Host struct {
	Sentinel bool
	I        int
}

// String is its name: n1, s1.
func (h Host) String() string {
	if h.Sentinel {
		return fmt.Sprintf("s%d", h.I)
	}
	return fmt.Sprintf("n%d", h.I)
}

// Location is where a server is: its own addresses, and its gates', the only ones that clients and other servers know.
type Location struct {
	IP            netip.Addr // it listens there and connects from there; this program can reach it
	Port, BusPort int        // that it listens on; BusPort in a cluster only
	Gate, BusGate netip.AddrPort
	Bind          bool   // its machine has other addresses: it needs bind directives
	Dir           string // its directory, as seen by the server; empty: as seen by this program
	Log           string // its log file, as seen by the server; empty: it logs to standard output
	Socket        string // name of the Unix socket in its directory for this program's commands; empty: they go to IP
}

// Last bytes of addresses in a network of servers. A topology has at most 15
// nodes and as many Sentinels.
const (
	firstNode     = 10
	firstSentinel = 40
	networkPort   = 6379
	networkBus    = 16379
)

// InSubnet is the location of h in a network of servers, a subnet of at least 64
// addresses: each server has its own address and the same ports; all gates are at
// gateway, which is this machine's address in it, at ports from firstPort on.
func InSubnet(subnet netip.Prefix, gateway netip.Addr, firstPort int, h Host) Location {
	last := firstNode + h.I
	if h.Sentinel {
		last = firstSentinel + h.I
	}
	gate := firstPort + 2*last
	bytes := subnet.Addr().As4()
	bytes[3] += byte(last)
	return Location{
		IP: netip.AddrFrom4(bytes), Port: networkPort, BusPort: networkBus,
		Gate: netip.AddrPortFrom(gateway, uint16(gate)), BusGate: netip.AddrPortFrom(gateway, uint16(gate+1)),
	}
}

// maxSocketPath is the longest path of a socket (unix(7)).
const maxSocketPath = 107

// checkSocket rejects a directory in which the path of the server's socket is too long.
func (s *server) checkSocket() error {
	if s.location.Socket == "" || len(s.admin.Addr) <= maxSocketPath {
		return nil
	}
	return fmt.Errorf("%w: the path of socket %s is too long: set TMPDIR to a path of at most %d bytes",
		cluster.ErrEnvironment, s.admin.Addr, len(os.TempDir())+maxSocketPath-len(s.admin.Addr))
}

// target is the address that the gate connects to.
func (p Location) target() string { return p.at(p.Port) }

func (p Location) at(port int) string { return netip.AddrPortFrom(p.IP, uint16(port)).String() }

// LaunchSpec is a server to start.
type LaunchSpec struct {
	Host
	Args []string    // of redis-server
	Dir  string      // its directory, as seen by this program
	Env  []string    // in addition to the launcher's own
	Log  string      // file to which its output is appended
	User *child.User // see [child.Spec]
	Mark string      // see [child.Spec]
}

// Process is a server that was launched. Its methods may be called concurrently.
type Process interface {
	Wait() error // returns when it has exited; the error has the exit status
	Kill() error // SIGKILL; returns when it has exited, and may be called after that
	// Stop returns when it is stopped. The error wraps [cluster.ErrDown] or
	// [child.ErrExited] if it has exited.
	Stop() error
	Continue() error
}

// launched adds a channel to wait for the exit.
type launched struct {
	Process
	done chan struct{} // closed when it has exited
	err  error         // of Wait; valid once done is closed
}

func watchExit(p Process) *launched {
	r := &launched{Process: p, done: make(chan struct{})}
	go func() {
		r.err = p.Wait()
		close(r.done)
	}()
	return r
}

// inside is a path below the server's directory, as seen by the server.
func (s *server) inside(path string) string {
	if s.location.Dir == "" {
		return path
	}
	return filepath.Join(s.location.Dir, strings.TrimPrefix(path, s.dir))
}

// loopback launches processes on addresses of 127.0.0.0/8, with one port for all (two in a cluster).
type loopback struct {
	program string
	port    int
	ledger  *ledger.Ledger
}

// Locate gives every server its own address.
func (l *loopback) Locate(h Host) Location {
	return Location{
		IP: h.serverAddr(), Port: l.port, BusPort: l.port + 1, Bind: true,
		Gate: netip.AddrPortFrom(h.gateAddr(), uint16(l.port)), BusGate: netip.AddrPortFrom(h.gateAddr(), uint16(l.port+1)),
	}
}

// Launch starts a child process.
func (l *loopback) Launch(_ context.Context, s LaunchSpec) (Process, error) {
	return startChild(l.ledger, child.Spec{
		Path: l.program, Args: s.Args, Dir: s.Dir, Env: append(os.Environ(), s.Env...), Stderr: s.Log,
		User: s.User, Mark: s.Mark,
	})
}

// startChild starts a child and records it in the ledger.
func startChild(ledger *ledger.Ledger, spec child.Spec) (Process, error) {
	p, err := child.Start(spec)
	if err != nil {
		return nil, err
	}
	if err := ledger.Process(p.PID()); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}
