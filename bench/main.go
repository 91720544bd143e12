// Command bench puts package lock beside its rivals and prints one table from
// one run. It starts a redis-server of its own on loopback, and ends it.
//
// Read [subject] first: a lock as the benchmark sees it. Every subject works in
// this process, on the same server, in turns: round by round, so that whatever
// slows the machine down slows all of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"
)

func main() {
	var c config
	flag.IntVar(&c.rounds, "rounds", 5, "rounds of each measurement; the table has the medians")
	flag.DurationVar(&c.span, "span", time.Second, "how long one round of a throughput takes")
	flag.IntVar(&c.crowd, "crowd", 1000, "waiters of the crowd")
	flag.IntVar(&c.watched, "watched", 10000, "holds that are watched at once")
	flag.StringVar(&c.only, "only", "", "run this part alone: costs, guarantees, pairs, waiters, crowd or watched")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// config is what the command line says.
type config struct {
	rounds, crowd, watched int
	span                   time.Duration
	only                   string
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
	fmt.Println("load average of the machine at the start:", loadAverage())
	defer func() { fmt.Println("\nload average of the machine at the end:", loadAverage()) }()
	for _, part := range []struct {
		name string
		run  func(context.Context, *server, config) error
	}{
		{"costs", costs}, {"guarantees", guarantees}, {"pairs", pairs},
		{"waiters", waiters}, {"crowd", crowd}, {"watched", watched},
	} {
		if c.only != "" && c.only != part.name {
			continue
		}
		if err := part.run(ctx, s, c); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// loadAverage is the load average of the machine: of the last one, five and fifteen minutes.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return "not known"
	}
	return strings.Join(fields[:3], " ")
}
