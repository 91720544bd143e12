package process

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// wallClock sets the wall clock of one server. Its methods are called by one
// goroutine at a time (under server.mu).
type wallClock interface {
	// set makes the clock jump now, also if the server is not running.
	set(clock cluster.Clock, now time.Time) error
	// starting is called before each start of the server.
	starting(now time.Time) error
	// startUncertainty is how much later than starting the clock may begin to drift.
	startUncertainty() time.Duration
	// exited is called when the process has exited.
	exited(pid int)
}

// MissingClocks describes the missing parts of this machine for setting servers' clocks; "": none.
func MissingClocks() string {
	_, missing := ClockMethod()
	return missing
}

// ClockMethod describes how servers' clocks are set on this machine, or the missing parts.
func ClockMethod() (method, missing string) {
	if runtime.GOOS != "linux" {
		return "", "clocks of servers are set by a preloaded library, which needs Linux"
	}
	path, err := compiler()
	if err == nil {
		return "a library built with " + path, ""
	}
	if lib, _, why := findFaketime(); why == "" {
		return lib + " (slower than the library that a C compiler would build)", ""
	}
	return "", fmt.Sprintf("setting servers' clocks needs a C compiler (%v) or libfaketime: "+
		"Debian, Ubuntu: apt-get install gcc libc6-dev, or libfaketime", err)
}

// addClocks gives every node a clock that can be set.
func (c *Cluster) addClocks(ctx context.Context) error {
	if why := MissingClocks(); why != "" {
		return fmt.Errorf("%w: %s", cluster.ErrEnvironment, why)
	}
	cc, err := compiler()
	switch {
	case err == nil:
		return c.buildShim(ctx, cc)
	case !c.topology.Redis():
		return fmt.Errorf("%w: setting the clocks of topology %s needs a C compiler: Debian, Ubuntu: "+
			"apt-get install gcc libc6-dev (%w)", cluster.ErrEnvironment, c.topology.Kind, err)
	}
	return c.addFaketime()
}

// SetClock makes the wall clock of node jump. It returns when [Cluster.ReadClock] returns the new time, or if it is not
// supported; a node that is not running has it when it starts.
func (c *Cluster) SetClock(ctx context.Context, node string, clock cluster.Clock) error {
	return c.with("setting the clock of", node, func(s *server) error { return s.setClock(ctx, clock) })
}

func (s *server) setClock(ctx context.Context, clock cluster.Clock) error {
	if s.clock == nil {
		return fmt.Errorf("%w: the servers were started without adjustable clocks", cluster.ErrEnvironment)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	set := time.Now()
	if err := s.clock.set(clock, set); err != nil || !s.responsive() {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clockWait)
	defer cancel()
	return poll(ctx, func() string {
		sent := time.Now()
		offset, err := s.clockOffset(ctx)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			return ""
		case err != nil:
			return err.Error()
		}
		took := time.Since(sent)
		want := clock.Offset + time.Duration(clock.Drift*float64(sent.Sub(set)))
		if off := (offset - want).Abs(); off > clockError+took+driftOver(clock, took+s.clock.startUncertainty()) {
			return fmt.Sprintf("its clock is ahead by %v, not %v", offset, want)
		}
		return ""
	})
}

// How long a server may take to read its new clock, and the error that is tolerated.
const (
	clockWait  = 10 * time.Second
	clockError = 250 * time.Millisecond
)

// driftOver is the time that clock gains or loses in d.
func driftOver(clock cluster.Clock, d time.Duration) time.Duration {
	return time.Duration(math.Abs(clock.Drift) * float64(d))
}

// ReadClock is how far the clock of node is ahead of this machine's.
func (c *Cluster) ReadClock(ctx context.Context, node string) (ahead time.Duration, err error) {
	err = c.with("reading the clock of", node, func(s *server) error {
		if !s.responsive() {
			return cluster.ErrDown
		}
		ahead, err = s.clockOffset(ctx)
		return err
	})
	return ahead, err
}

// clockOffset is how far the clock of s is ahead of this machine's.
func (s *server) clockOffset(ctx context.Context) (time.Duration, error) {
	at, err := s.software.time(ctx, s)
	if err != nil {
		return 0, err
	}
	return at.Sub(time.Now().Round(0)), nil
}
