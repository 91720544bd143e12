// Command bench compares package lock with other lock libraries and prints the tables of one run. It starts a
// redis-server on loopback and stops it.
//
// Read [subject] first: one lock library. All subjects run in this process, against the same server, one after the
// other in each round, so that whatever slows the machine down slows all of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	var c config
	flag.IntVar(&c.rounds, "rounds", 5, "rounds of each measurement; tables show medians")
	flag.DurationVar(&c.span, "span", time.Second, "duration of one round")
	flag.IntVar(&c.crowd, "crowd", 1000, "goroutines of the part crowd")
	flag.IntVar(&c.watched, "watched", 10000, "concurrent holds of the part watched")
	flag.StringVar(&c.only, "only", "", "run only this part: costs, guarantees, pairs, turns, waiters, crowd or watched")
	flag.StringVar(&c.locks, "locks", "", "measure only these in the parts waiters and crowd, separated by commas")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// config are the command-line options.
type config struct {
	rounds, crowd, watched int
	span                   time.Duration
	only, locks            string
}

// chosen are the subjects to measure.
func (c config) chosen(all []subject) []subject {
	if c.locks == "" {
		return all
	}
	names := strings.Split(c.locks, ",")
	return slices.DeleteFunc(slices.Clone(all), func(s subject) bool { return !slices.Contains(names, s.name) })
}

func run(ctx context.Context, c config) error {
	s, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer s.stop()
	version, err := s.version(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("redis-server %s on loopback, %s, %d CPUs (GOMAXPROCS %d); medians of %d rounds\n",
		version, runtime.Version(), runtime.NumCPU(), runtime.GOMAXPROCS(0), c.rounds)
	fmt.Println(settings)
	fmt.Println("load average at the start:", loadAverage())
	defer func() { fmt.Println("\nload average at the end:", loadAverage()) }()
	for _, part := range []struct {
		name string
		run  func(context.Context, *server, config) error
	}{
		{"costs", costs}, {"guarantees", guarantees}, {"pairs", pairs}, {"turns", turns},
		{"waiters", waiters}, {"crowd", crowd}, {"watched", watched},
	} {
		if c.only != "" && c.only != part.name {
			continue
		}
		if err := bounded(partLimit, func() error { return part.run(ctx, s, c) }); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// partLimit is the longest time of one part: several times its time on a busy machine.
const partLimit = 15 * time.Minute

// bounded is f, or an error after limit: a library under test may hang in a call that has no context.
func bounded(limit time.Duration, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("not done after %v: %w", limit, errStuck)
	}
}

// loadAverage is the load average of the last one, five and fifteen minutes.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}
