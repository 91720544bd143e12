package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/gate"
	"github.com/lockchaos/lockchaos/internal/lossydisk"
)

const (
	pollEvery = 2 * time.Millisecond // while waiting for something that sends no event
	tailLines = 8                    // of a dead server's log, shown in the error
	tailBytes = 4 << 10
)

// server is one redis-server or Sentinel and the gate in front of it.
type server struct {
	Host
	name     string
	launcher Launcher
	location Location
	dir      string // its configuration, and what a cluster's node knows of the others
	disk     string // its data: the folder below dir that a power cut empties
	conf     string
	clock    clockwork       // nil: it has this machine's
	pid      int             // of the process started last; 0: its launcher does not know it
	env      []string        // beside what the launcher adds
	power    *lossydisk.Disk // nil: its disk forgets nothing
	logFile  string
	log      *slog.Logger
	gate     *gate.Gate
	bus      *gate.Gate // in front of its cluster bus; nil: it is in no cluster
	admin    *admin

	proc   atomic.Pointer[running] // nil before the first start
	paused atomic.Bool

	mu     sync.Mutex // start, kill, pause and resume take turns
	wanted bool       // it should be running; false once it was killed
}

// up says whether there is any use in asking the server something.
func (s *server) up() bool {
	return s.runs() && !s.paused.Load()
}

// runs says whether it has been launched and has not ended, paused or not.
func (s *server) runs() bool {
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

// start starts the process and waits until it answers.
func (s *server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs() {
		return fmt.Errorf("starting %s: it runs already", s.name)
	}
	args := []string{s.inside(s.conf)}
	if s.Sentinel {
		args = append(args, "--sentinel")
	}
	if s.clock != nil {
		if err := s.clock.begins(time.Now()); err != nil {
			return fmt.Errorf("starting %s: %w", s.name, err)
		}
	}
	launched, err := s.launcher.Launch(ctx, LaunchSpec{Host: s.Host, Args: args, Dir: s.dir, Env: s.env, Log: s.logFile})
	if err != nil {
		return fmt.Errorf("starting %s: %w", s.name, err)
	}
	p := follow(launched)
	s.pid = 0
	if known, ok := launched.(interface{ PID() int }); ok {
		s.pid = known.PID()
	}
	s.wanted = true
	s.paused.Store(false)
	s.proc.Store(p)
	if err := s.waitAnswer(ctx, p); err != nil {
		return err
	}
	if err := s.eachGate((*gate.Gate).Admit); err != nil {
		return fmt.Errorf("starting %s: %w", s.name, err)
	}
	go s.watch(p)
	return nil
}

// watch tells of an end that nobody asked for.
func (s *server) watch(p *running) {
	<-p.done
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted && s.proc.Load() == p {
		_ = s.eachGate((*gate.Gate).Refuse)
		s.log.Warn("server ended by itself", "node", s.name, "how", p.how, "log", s.logFile)
	}
}

// waitAnswer waits until the server answers PING with PONG: one that still
// loads its data answers with an error.
func (s *server) waitAnswer(ctx context.Context, p *running) error {
	for {
		replies, err := s.admin.ask(ctx, []string{"PING"})
		if err == nil && replies[0] == "PONG" {
			return nil
		}
		select {
		case <-p.done:
			return s.obituary(p)
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to answer: %w: %w; its log ends:\n%s",
				s.name, cluster.ErrEnvironment, ctx.Err(), s.tail())
		case <-time.After(pollEvery):
		}
	}
}

// obituary is the error of a server that died at its start.
func (s *server) obituary(p *running) error {
	tail := s.tail()
	if strings.Contains(tail, "Address already in use") {
		return fmt.Errorf("starting %s at %s: %w: %w", s.name, s.admin.addr, cluster.ErrEnvironment, ErrPortTaken)
	}
	if _, words, found := strings.Cut(tail, "*** FATAL CONFIG FILE ERROR"); found {
		return fmt.Errorf("starting %s: %w: %s", s.name, cluster.ErrOption, strings.Join(strings.Fields(words), " "))
	}
	return fmt.Errorf("starting %s: %w: it ended (%v); its log ends:\n%s",
		s.name, cluster.ErrEnvironment, p.how, tail)
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

// kill ends the process if it runs. Its gate stops listening just before, so
// that callers are refused, as where no server runs. To be accepted and then
// reset is not the same to them: a request may have been carried out.
func (s *server) kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = false
	p := s.proc.Load()
	if p == nil {
		return nil
	}
	if err := errors.Join(s.eachGate((*gate.Gate).Refuse), p.Kill()); err != nil {
		return fmt.Errorf("killing %s: %w", s.name, err)
	}
	<-p.done // or it would seem to run for a moment more
	if s.clock != nil {
		s.clock.ended(s.pid)
		s.pid = 0 // by now it may be somebody else's
	}
	s.paused.Store(false)
	return nil
}

// pause stops the process. It counts as paused from before the signal on, so
// that no sample waits for an answer that cannot come.
func (s *server) pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.proc.Load()
	if p == nil {
		return fmt.Errorf("pausing %s: %w", s.name, cluster.ErrDown)
	}
	was := s.paused.Swap(true)
	if err := p.Stop(); err != nil {
		s.paused.Store(was)
		return fmt.Errorf("pausing %s: %w", s.name, downIfGone(err))
	}
	return nil
}

func (s *server) resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.proc.Load()
	if p == nil {
		return fmt.Errorf("resuming %s: %w", s.name, cluster.ErrDown)
	}
	err := p.Continue()
	s.paused.Store(false)
	if err != nil {
		return fmt.Errorf("resuming %s: %w", s.name, downIfGone(err))
	}
	return nil
}

// downIfGone adds the class by which other packages know that a node is down.
func downIfGone(err error) error {
	if errors.Is(err, child.ErrExited) {
		return fmt.Errorf("%w: %w", cluster.ErrDown, err)
	}
	return err
}

func (s *server) closeGates() error { return s.eachGate((*gate.Gate).Close) }

func (s *server) eachGate(do func(*gate.Gate) error) error {
	var errs []error
	for _, g := range []*gate.Gate{s.gate, s.bus} {
		if g != nil { // a start that failed half way has not opened all
			errs = append(errs, do(g))
		}
	}
	return errors.Join(errs...)
}
