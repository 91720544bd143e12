package process

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/cluster"
)

// clockwork sets the wall clock of one server. Its methods are called by one
// goroutine at a time (under server.mu).
type clockwork interface {
	// set has the clock jump now, also that of a server that does not run.
	set(clock cluster.Clock, now time.Time) error
	// begins is called before the server is started, each time.
	begins(now time.Time) error
	// ended is called when the process has ended.
	ended(pid int)
}

// MissingClocks is what this machine lacks in order to set servers' clocks; ""
// if nothing.
func MissingClocks() string {
	_, missing := ClocksBy()
	return missing
}

// ClocksBy is what sets servers' clocks on this machine, for people, or what is missing for it.
func ClocksBy() (by, missing string) {
	if runtime.GOOS != "linux" {
		return "", "clocks of servers are set by a preloaded library, which needs Linux"
	}
	path, err := compiler()
	if err == nil {
		return path + " builds the library that sets them", ""
	}
	if lib, _, why := findFaketime(); why == "" {
		return lib + " sets them: there is no C compiler to build a library that costs less", ""
	}
	return "", fmt.Sprintf("a C compiler builds the library that sets servers' clocks, and there is none (%v), "+
		"nor libfaketime, which can do it too: Debian, Ubuntu: apt-get install gcc libc6-dev, or libfaketime", err)
}

// fitClocks gives every node a clock that can be set.
func (c *Cluster) fitClocks(ctx context.Context) error {
	if why := MissingClocks(); why != "" {
		return fmt.Errorf("%w: %s", cluster.ErrEnvironment, why)
	}
	if cc, err := compiler(); err == nil {
		return c.buildShim(ctx, cc)
	}
	return c.fitFaketime()
}

// SetClock has the wall clock of node jump. It returns when the node answers
// TIME with the new time; one that does not run finds it when it starts.
func (c *Cluster) SetClock(ctx context.Context, node string, clock cluster.Clock) error {
	s, err := c.server(node)
	if err != nil {
		return fmt.Errorf("setting the clock of %w", err)
	}
	if s.clock == nil {
		return fmt.Errorf("setting the clock of %s: %w: the servers were started without clocks of their own",
			node, cluster.ErrEnvironment)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.clock.set(clock, time.Now()); err != nil {
		return fmt.Errorf("setting the clock of %s: %w", node, err)
	}
	if !s.up() {
		return nil
	}
	err = poll(ctx, func() string {
		ahead, err := s.ahead(ctx)
		if off := (ahead - clock.Offset).Abs(); err == nil && off > clockError {
			return fmt.Sprintf("its clock is %v ahead, not %v", ahead, clock.Offset)
		}
		return message(err)
	})
	if err != nil {
		return fmt.Errorf("setting the clock of %s: %w", node, err)
	}
	return nil
}

// clockError is how far off TIME may be: the time that the answer takes, and
// what a drift has made since the jump.
const clockError = 250 * time.Millisecond

// ahead is how far the clock of s is ahead of this machine's.
func (s *server) ahead(ctx context.Context) (time.Duration, error) {
	replies, err := s.admin.ask(ctx, []string{"TIME"})
	if err != nil {
		return 0, err
	}
	now := time.Now()
	words, _ := replies[0].([]any)
	if len(words) != 2 {
		return 0, fmt.Errorf("reading %v as a time: %w", replies[0], errProtocol)
	}
	seconds, err1 := strconv.ParseInt(fmt.Sprint(words[0]), 10, 64)
	micros, err2 := strconv.ParseInt(fmt.Sprint(words[1]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("reading %v as a time: %w", replies[0], errProtocol)
	}
	return time.Unix(seconds, micros*1000).Sub(now.Round(0)), nil
}
