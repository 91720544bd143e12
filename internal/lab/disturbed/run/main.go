// Command run repeats safe scenarios on real servers while something outside of the run disturbs them, and fails if one
// convicts its lock; see package disturbed.
//
//	go run ./internal/lab/disturbed/run -draw 7        40 scenarios that 7 draws, with every disturbance
//	go run ./internal/lab/disturbed/run -only '^mixed' those with such names
//	go run ./internal/lab/disturbed/run -by client     with a stopped client
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/lab/disturbed"
	"github.com/lockchaos/lockchaos/scenarios"
)

type options struct {
	program, only, by, out string
	count, jobs            int
	draw                   uint64
}

func main() {
	disturbed.SpinIfAsked()
	var o options
	flag.StringVar(&o.program, "program", "bin/chaos", "the program that runs scenarios")
	flag.StringVar(&o.only, "only", "", "regular expression for the names of scenarios")
	flag.StringVar(&o.by, "by", "", "regular expression for the disturbances, such as '^client stopped for 5s'")
	flag.StringVar(&o.out, "out", "chaos-runs/disturbed", "directory of the runs; those that convict are kept")
	flag.IntVar(&o.count, "count", 40, "how many scenarios")
	flag.IntVar(&o.jobs, "jobs", 1, "runs at the same time")
	flag.Uint64Var(&o.draw, "draw", 1, "draws the scenarios, and is the seed of each run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// tally counts the runs with one disturbance.
type tally struct{ runs, stopped, inconclusive, convicted int }

func run(ctx context.Context, o options) error {
	names, err := drawn(o)
	if err != nil {
		return err
	}
	by, err := regexp.Compile(o.by)
	if err != nil {
		return fmt.Errorf("-by: %w", err)
	}
	convicted := 0
	for _, d := range disturbed.All() {
		if !by.MatchString(d.String()) {
			continue
		}
		t, err := repeat(ctx, o, d, names)
		fmt.Printf("%s: %d of %d convicted, %d inconclusive, %d stopped\n", d, t.convicted, t.runs, t.inconclusive, t.stopped)
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		convicted += t.convicted
	}
	if convicted > 0 {
		return fmt.Errorf("%d runs convicted a lock because of a disturbance from outside of the run", convicted)
	}
	return nil
}

// drawn are the names of all safe scenarios, in the order that the seed draws: scenarios that cannot run here do not
// count.
func drawn(o options) (names []string, err error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	all, err := scenarios.Catalog()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Expect.Is(checker.Safe) && only.MatchString(s.Name) {
			names = append(names, s.Name)
		}
	}
	draw := rand.New(rand.NewPCG(o.draw, 0xD157))
	draw.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names, nil
}

// repeat executes scenarios with one disturbance until o.count of them have run.
func repeat(ctx context.Context, o options, d disturbed.Disturbance, names []string) (t tally, err error) {
	idle, err := disturbed.KeepBusy(d.Busy)
	if err != nil {
		return t, err
	}
	defer idle()
	var mu sync.Mutex
	taken := 0 // runs that count, or may still count
	next := func() (name string, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(names) == 0 || taken == o.count || ctx.Err() != nil {
			return "", false
		}
		name, names = names[0], names[1:]
		taken++
		return name, true
	}
	g, ctx := errgroup.WithContext(ctx)
	for range o.jobs {
		g.Go(func() error {
			for name, ok := next(); ok; name, ok = next() {
				out := filepath.Join(o.out, name+"-"+strings.ReplaceAll(d.String(), " ", "-"))
				r, err := d.Disturb(ctx, disturbed.Run{Program: []string{o.program}, Env: os.Environ(), Scenario: name,
					Seed: o.draw, Out: out})
				mu.Lock()
				if errors.Is(err, disturbed.ErrNotRun) {
					taken--
					err = nil
				} else if err == nil {
					t.add(d, name, r)
				}
				mu.Unlock()
				if err != nil {
					return err
				}
				if r == nil || r.Judgement.Verdict != checker.Unsafe {
					_ = os.RemoveAll(out)
				}
			}
			return nil
		})
	}
	err = g.Wait()
	return t, err
}

// add counts a run, and prints how it ended.
func (t *tally) add(d disturbed.Disturbance, name string, r *disturbed.Result) {
	t.runs++
	note := ""
	switch {
	case r.Stopped != 0:
		t.stopped++
	case d.Victim != disturbed.Nothing:
		note = " (it ended before it was disturbed)"
	}
	switch r.Judgement.Verdict {
	case checker.Unsafe:
		t.convicted++
		note += ": " + r.Judgement.Sentence + " (" + r.Dir.Path + ")"
	case checker.Inconclusive:
		t.inconclusive++
		note += ": " + r.Judgement.Sentence
	}
	fmt.Printf("%-24s %-32s %s%s\n", d, name, r.Judgement.Verdict, note)
}
