// Command run runs the rows of adapters/*/expect.tsv on real servers and writes docs/contributors/verdicts.md.
//
//	go run ./internal/lab/libraries/run                        rows with fewer than 5 runs
//	go run ./internal/lab/libraries/run -only '^redis-py/'     some of them
//	go run ./internal/lab/libraries/run -document              run nothing: write the page from the stored results
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/internal/lab/libraries"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/internal/suite"
)

// Files, in the repository.
const (
	resultsFile  = "internal/lab/libraries/results.json"
	documentFile = "docs/contributors/verdicts.md"
)

type options struct {
	only     string
	runs     int
	jobs     int
	out      string
	document bool
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "regular expression for LIBRARY/KIND SCENARIO: run these rows")
	flag.IntVar(&o.runs, "runs", 5, "runs of each row, with those that are stored")
	flag.IntVar(&o.jobs, "jobs", 1, "runs at the same time")
	flag.StringVar(&o.out, "out", "chaos-runs/verdicts", "directory of the runs")
	flag.BoolVar(&o.document, "document", false, "run nothing: write "+documentFile+" from "+resultsFile)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	all, err := libraries.Load(resultsFile)
	if err != nil {
		return err
	}
	if !o.document {
		m := &measurement{options: o, all: all}
		if err := m.run(ctx); err != nil {
			return err
		}
		all = m.all
	}
	page, err := libraries.Document(all)
	if err != nil {
		return err
	}
	return os.WriteFile(documentFile, []byte(page), 0o644)
}

type measurement struct {
	options
	mu  sync.Mutex
	all []libraries.Result
}

func (m *measurement) run(ctx context.Context) error {
	rows, err := m.rows()
	if err != nil {
		return err
	}
	var workers errgroup.Group
	workers.SetLimit(m.jobs)
	for _, r := range rows {
		workers.Go(func() error {
			if ctx.Err() == nil {
				m.runOnce(ctx, r)
			}
			return nil
		})
	}
	return errors.Join(workers.Wait(), ctx.Err())
}

type row struct {
	adapters.Expectation
	version string
}

// rows are the runs to make: each row as often as it lacks runs, the rows in turn.
func (m *measurement) rows() (todo []row, err error) {
	pattern, err := regexp.Compile(m.only)
	if err != nil {
		return nil, err
	}
	catalog, err := adapters.Catalog()
	if err != nil {
		return nil, err
	}
	for round := range m.runs {
		for _, a := range catalog {
			expected, err := a.Expected()
			if err != nil {
				return nil, err
			}
			if err := a.Ready(); err != nil {
				if round == 0 {
					fmt.Fprintln(os.Stderr, "NOT RUN:", err)
				}
				continue
			}
			for _, e := range expected {
				r := row{e, a.Version}
				if pattern.MatchString(e.Lock+" "+e.Scenario) && m.result(r).Runs() <= round {
					todo = append(todo, r)
				}
			}
		}
	}
	return todo, nil
}

// result is what is stored of a row.
func (m *measurement) result(r row) *libraries.Result {
	i := slices.IndexFunc(m.all, func(x libraries.Result) bool {
		return x.Lock == r.Lock && x.Scenario == r.Scenario && x.Version == r.version
	})
	if i < 0 {
		m.all = append(m.all, libraries.Result{Lock: r.Lock, Scenario: r.Scenario, Version: r.version})
		i = len(m.all) - 1
	}
	return &m.all[i]
}

func (m *measurement) runOnce(ctx context.Context, r row) {
	seed := rand.Uint64N(1 << 32)
	command := fmt.Sprintf("chaos run --scenario %s --lock %s --seed %d", r.Scenario, r.Lock, seed)
	out, err := libraries.Run(ctx, r.Expectation,
		runner.Options{Seed: seed, Out: m.out, Repeat: command, Version: "verdicts"})
	if err != nil {
		if !errors.Is(err, runner.ErrInterrupted) && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", command, err)
		}
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.result(r).Add(out.Judgement, command)
	fmt.Printf("%s\t%s\t%s\t%s\n", r.Lock, r.Scenario, suite.LibraryOutcome(out.Judgement), out.Judgement.Sentence)
	if err := libraries.Save(resultsFile, m.all); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
