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

// Launcher is what servers stand on. Here that is the processes and the loopback
// addresses of this machine, see [Start]; package cluster/docker brings
// containers, see [StartWith]. Everything else about real servers - their
// configuration, when they are ready, gates, witness, Sentinels, shards - is the
// same on every launcher.
type Launcher interface {
	// Location says where server h is to be. It is asked once, before anything is launched.
	Locate(h Host) Location
	// LaunchSpec starts the server, also again after it has ended. It is called from several goroutines.
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

// Location is where a server is: its own addresses, and those of the gates in
// front of it, which are all that anybody else is told.
type Location struct {
	IP            netip.Addr // it listens there and calls from there; this program can reach it
	Port, BusPort int        // that it listens on; BusPort in a cluster only
	Gate, BusGate netip.AddrPort
	Bind          bool   // IP is one of several of its machine: it has to be told to keep to it
	Dir           string // its folder, as it sees it itself; empty: as this program does
	Log           string // the file that it writes its log to, as it sees it; empty: what it prints is its log
	Socket        string // name of the Unix socket in its folder for this program's own questions; empty: they go to IP
}

// Last parts of addresses in a network that servers have for themselves. A
// topology has at most 15 nodes and as many Sentinels.
const (
	firstNode     = 10
	firstSentinel = 40
	networkPort   = 6379
	networkBus    = 16379
)

// InSubnet is the place of h in a network that servers have for themselves, subnet of
// at least 64 addresses: each has an address of its own and the same ports; all
// gates are at gateway, which is this machine's own address in it, at ports from
// firstPort on.
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

// longestSocket is what unix(7) allows for the path of a socket.
const longestSocket = 107

// checkSocket refuses a folder in which the server's socket could not be called.
func (s *server) checkSocket() error {
	if s.location.Socket == "" || len(s.admin.addr) <= longestSocket {
		return nil
	}
	return fmt.Errorf("%w: the path of the temporary folder is so long that the socket %s cannot be called: set TMPDIR "+
		"to one of at most %d bytes", cluster.ErrEnvironment, s.admin.addr, len(os.TempDir())+longestSocket-len(s.admin.addr))
}

// target is where a gate reaches the server.
func (p Location) target() string { return netip.AddrPortFrom(p.IP, uint16(p.Port)).String() }

// LaunchSpec is a server that is to be started.
type LaunchSpec struct {
	Host
	Args []string // of redis-server
	Dir  string   // its folder, as this program sees it
	Env  []string // beside what the launcher adds
	Log  string   // file for what it prints; appended to
}

// Process is a server that was launched. Its methods may be called from several
// goroutines.
type Process interface {
	Wait() error // returns when it has ended; the error is how
	Kill() error // ends it at once and returns when it is gone; may be called after the end
	// Stop has it stand still and returns when it does. The error wraps [cluster.ErrDown]
	// or [child.ErrExited] if it has ended.
	Stop() error
	Continue() error
}

// running is a process whose end can be waited for beside other events.
type running struct {
	Process
	done chan struct{} // closed when it has ended
	how  error         // valid once done is closed
}

func follow(p Process) *running {
	r := &running{Process: p, done: make(chan struct{})}
	go func() {
		r.how = p.Wait()
		close(r.done)
	}()
	return r
}

// inside is a path below the server's folder as the server sees it.
func (s *server) inside(path string) string {
	if s.location.Dir == "" {
		return path
	}
	return filepath.Join(s.location.Dir, strings.TrimPrefix(path, s.dir))
}

// loopback is the launcher of package process: addresses of 127.0.0.0/8 and one
// port for all (two in a cluster).
type loopback struct {
	program string
	port    int
	ledger  *ledger.Ledger
}

// Location gives every server an address of its own.
func (l *loopback) Locate(h Host) Location {
	return Location{
		IP: h.real(), Port: l.port, BusPort: l.port + 1, Bind: true,
		Gate: netip.AddrPortFrom(h.known(), uint16(l.port)), BusGate: netip.AddrPortFrom(h.known(), uint16(l.port+1)),
	}
}

// LaunchSpec starts a child process.
func (l *loopback) Launch(_ context.Context, s LaunchSpec) (Process, error) {
	return launch(l.ledger, child.Spec{
		Path: l.program, Args: s.Args, Dir: s.Dir, Env: append(os.Environ(), s.Env...), Stderr: s.Log,
	})
}

// launch starts a child and writes it down.
func launch(ledger *ledger.Ledger, spec child.Spec) (Process, error) {
	p, err := child.Start(spec)
	if err != nil {
		return nil, err
	}
	if err := ledger.Process(p.PID()); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}
