package process

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/wallclock"
)

// addClocks gives every node a clock that can be set.
func (c *Cluster) addClocks(ctx context.Context) error {
	if why := wallclock.Missing(); why != "" {
		return fmt.Errorf("%w: %s", cluster.ErrEnvironment, why)
	}
	add := func(s *server) (wallclock.Clock, []string, error) { return wallclock.Faketime(s.dir) }
	cc, err := wallclock.Compiler()
	switch {
	case err == nil:
		library, err := wallclock.Compile(ctx, cc, c.data)
		if err != nil {
			return err
		}
		add = func(s *server) (wallclock.Clock, []string, error) { return wallclock.Preload(library, s.dir, s.inside) }
	case !c.topology.Redis():
		return fmt.Errorf("%w: setting the clocks of topology %s needs a C compiler: Debian, Ubuntu: "+
			"apt-get install gcc libc6-dev (%w)", cluster.ErrEnvironment, c.topology.Kind, err)
	}
	for _, s := range c.nodes {
		var variables []string
		if s.clock, variables, err = add(s); err != nil {
			return err
		}
		s.env = append(s.env, variables...)
	}
	return nil
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
	if err := s.clock.Set(clock, set); err != nil || !s.responsive() {
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
		if off := (offset - want).Abs(); off > clockError+took+driftOver(clock, took+s.clock.StartUncertainty()) {
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
