package process

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// clockwork sets the wall clock of one server. Its methods are called by one
// goroutine at a time (under server.mu).
type clockwork interface {
	// set has the clock jump now, also that of a server that does not run.
	set(clock cluster.Clock, now time.Time) error
	// begins is called before the server is started, each time.
	begins(now time.Time) error
	// vague is how much later than begins the clock may have begun to count.
	vague() time.Duration
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
	set := time.Now()
	if err := s.clock.set(clock, set); err != nil {
		return fmt.Errorf("setting the clock of %s: %w", node, err)
	}
	if !s.up() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, clockWait)
	defer cancel()
	err = poll(ctx, func() string {
		asked := time.Now()
		ahead, err := s.ahead(ctx)
		if err != nil {
			return err.Error()
		}
		took := time.Since(asked)
		want := clock.Offset + time.Duration(clock.Drift*float64(asked.Sub(set)))
		if off := (ahead - want).Abs(); off > clockError+took+gained(clock, took+s.clock.vague()) {
			return fmt.Sprintf("its clock is %v ahead, not %v", ahead, want)
		}
		return ""
	})
	if err != nil {
		return fmt.Errorf("setting the clock of %s: %w", node, err)
	}
	return nil
}

// How long a server may take to read its new clock, and how far off that may be.
const (
	clockWait  = 10 * time.Second
	clockError = 250 * time.Millisecond
)

// gained is what clock gains or loses in a time.
func gained(clock cluster.Clock, in time.Duration) time.Duration {
	return time.Duration(math.Abs(clock.Drift) * float64(in))
}

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
