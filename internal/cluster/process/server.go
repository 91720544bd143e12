package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/gate"
	"github.com/lockchaos/lockchaos/internal/cluster/postgres"
	"github.com/lockchaos/lockchaos/internal/cluster/wallclock"
	"github.com/lockchaos/lockchaos/internal/lossydisk"
)

const (
	pollEvery = 2 * time.Millisecond // for conditions without an event
	tailLines = 8                    // of the log of a server that failed to start, shown in the error
	tailBytes = 4 << 10
)

// server is one server process and the gates in front of it.
type server struct {
	Host
	name     string
	launcher Launcher
	location Location
	dir      string // its configuration, and nodes.conf
	disk     string // its data: a directory below dir
	conf     string
	clock    wallclock.Clock // nil: it has this machine's
	pid      int             // of the last process; 0: unknown
	env      []string        // in addition to the launcher's own
	user     *child.User     // that it runs as; nil: this program's
	mark     string          // of its processes, see [child.Spec]; "": they stay in its process group
	power    *lossydisk.Disk // nil: a plain disk
	logFile  string
	log      *slog.Logger
	gate     *gate.Gate
	bus      *gate.Gate     // in front of its cluster bus or its peer port, or for its standby; nil: it has none
	more     []*gate.Gate   // in front of the other ports of a program of the user, in their order
	peers    []peerGates    // in front of its ports for the other members of its ensemble; nil: in no ZooKeeper ensemble
	admin    *admin         // of a Redis server
	reader   ensembleReader // of a ZooKeeper or etcd server or a database; nil: it is none
	software software

	proc   atomic.Pointer[launched] // nil before the first start
	paused atomic.Bool

	mu       sync.Mutex // held by start, kill, pause and resume
	expected bool       // to be running; false once it was killed
}

// responsive reports whether it is running and not paused.
func (s *server) responsive() bool {
	return s.running() && !s.paused.Load()
}

// running reports whether it has been launched and has not exited, paused or not.
func (s *server) running() bool {
	p := s.proc.Load()
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// start starts the process and waits until it replies.
func (s *server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		return errors.New("already running")
	}
	args, err := s.software.prepare(ctx, s)
	if err != nil {
		return err
	}
	if s.clock != nil {
		if err := s.clock.Starting(time.Now()); err != nil {
			return err
		}
	}
	launched, err := s.launcher.Launch(ctx, LaunchSpec{
		Host: s.Host, Args: args, Dir: s.dir, Env: s.env, Log: s.logFile, User: s.user, Mark: s.mark,
	})
	if err != nil {
		return err
	}
	p := watchExit(launched)
	s.pid = 0
	if known, ok := launched.(interface{ PID() int }); ok {
		s.pid = known.PID()
	}
	s.expected = true
	s.paused.Store(false)
	s.proc.Store(p)
	if err := s.waitReply(ctx, p); err != nil {
		return err
	}
	if err := s.eachGate((*gate.Gate).Admit); err != nil {
		return err
	}
	go s.watch(p)
	return nil
}

// watch logs an unexpected exit. Like kill it closes the gates, so that clients are refused.
func (s *server) watch(p *launched) {
	<-p.done
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expected && s.proc.Load() == p {
		_ = s.eachGate((*gate.Gate).Refuse)
		s.log.Warn("server exited unexpectedly", "node", s.name, "status", p.err, "log", s.logFile)
	}
}

// waitReply waits until the server replies.
func (s *server) waitReply(ctx context.Context, p *launched) error {
	for {
		if s.software.ping(ctx, s) == nil {
			return nil
		}
		select {
		case <-p.done:
			return s.startError(p)
		case <-ctx.Done():
			return fmt.Errorf("waiting for a reply: %w: %w; its log ends with:\n%s",
				cluster.ErrEnvironment, ctx.Err(), s.tail())
		case <-time.After(pollEvery):
		}
	}
}

// startError is the error of a server that exited during its start.
func (s *server) startError(p *launched) error {
	tail := s.tail()
	if strings.Contains(tail, "ddress already in use") {
		return fmt.Errorf("%s: %w: %w", s.location.target(), cluster.ErrEnvironment, ErrPortTaken)
	}
	if _, words, found := strings.Cut(tail, "*** FATAL CONFIG FILE ERROR"); found {
		return fmt.Errorf("%w: %s", cluster.ErrOption, strings.Join(strings.Fields(words), " "))
	}
	return fmt.Errorf("%w: it exited (%w); its log ends with:\n%s",
		cluster.ErrEnvironment, p.err, tail)
}

// tail is the end of the log.
func (s *server) tail() string {
	data, err := os.ReadFile(s.logFile)
	if err != nil {
		return err.Error()
	}
	data = bytes.TrimSpace(data[max(0, len(data)-tailBytes):])
	lines := strings.Split(string(data), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// kill kills the process if it is running. Its gates stop listening first, so that
// connections are refused, as where no server listens. A connection that is accepted
// and then reset is not the same to a client: the request may have been executed.
func (s *server) kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = false
	p := s.proc.Load()
	if p == nil {
		return nil
	}
	if s.power != nil {
		defer s.power.Abandon()()
	}
	if err := errors.Join(s.eachGate((*gate.Gate).Refuse), p.Kill()); err != nil {
		return err
	}
	<-p.done // for running
	postgres.RemoveInterlock(s.disk)
	if s.clock != nil {
		s.clock.Exited(s.pid)
		s.pid = 0 // the number may be reused
	}
	s.paused.Store(false)
	return nil
}

// pause stops the process. It counts as paused before the signal is sent, so that
// no sample waits for a reply.
func (s *server) pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.proc.Load()
	if p == nil {
		return cluster.ErrDown
	}
	was := s.paused.Swap(true)
	err := p.Stop()
	if err != nil {
		s.paused.Store(was)
	}
	return downIfExited(err)
}

func (s *server) resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.proc.Load()
	if p == nil {
		return cluster.ErrDown
	}
	err := p.Continue()
	s.paused.Store(false)
	return downIfExited(err)
}

// downIfExited wraps the error of a process that has exited in [cluster.ErrDown].
func downIfExited(err error) error {
	if errors.Is(err, child.ErrExited) {
		return fmt.Errorf("%w: %w", cluster.ErrDown, err)
	}
	return err
}

func (s *server) eachGate(do func(*gate.Gate) error) error {
	var errs []error
	for _, g := range s.gates() {
		errs = append(errs, do(g))
	}
	return errors.Join(errs...)
}

// gates are all gates in front of the server, as far as they are open.
func (s *server) gates() []*gate.Gate {
	all := append([]*gate.Gate{s.gate, s.bus}, s.more...)
	for _, p := range s.peers {
		all = append(all, p.quorum, p.election)
	}
	return slices.DeleteFunc(all, func(g *gate.Gate) bool { return g == nil })
}
