// Command run measures how many planted bugs the harness convicts; see package mutants.
//
//	go run ./internal/lab/mutants/run               measure rows that were not measured, and write detection.md
//	go run ./internal/lab/mutants/run -again all    measure all of them (or: convicted, survivors)
//	go run ./internal/lab/mutants/run -only fair/   some of them
//	go run ./internal/lab/mutants/run -draw TEXT    check a tenth of them, which TEXT draws, and write nothing
//	go run ./internal/lab/mutants/run -correct 100  simulate the locks without a bug, 100 seeds each, and write nothing
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockchaos/lockchaos/internal/lab/mutants"
)

// Files that a measurement writes, in the repository.
const (
	resultsFile  = "internal/lab/mutants/results.json"
	documentFile = "docs/contributors/detection.md"
	dataFile     = "docs/contributors/detection.tsv"
	bugsFile     = "docs/contributors/bugs.md"
)

type options struct {
	budget, total   time.Duration
	jobs, seeds     int
	correct         int
	first           uint64
	only, draw, dir string
	again           string
	document        bool
	generated       bool
}

func main() {
	var o options
	flag.DurationVar(&o.budget, "budget", time.Minute, "processor time for each row")
	flag.DurationVar(&o.total, "total", 0, "start no row after this time (0: no limit)")
	flag.IntVar(&o.jobs, "jobs", 1, "rows that are explored at the same time")
	flag.IntVar(&o.seeds, "seeds", 2, "seeds of each scenario for the coverage of package lock (0: leave it as it was)")
	flag.IntVar(&o.correct, "correct", 0,
		"instead: seeds of each scenario for the locks without a planted bug; -only names kind/scenario --lock NAME")
	flag.Uint64Var(&o.first, "first-seed", 1, "seed of the first run in each scenario")
	flag.StringVar(&o.only, "only", "", "regular expression for kind/name: measure these rows")
	flag.StringVar(&o.draw, "draw", "", "check a tenth of the rows, which this text draws, and write nothing")
	flag.StringVar(&o.dir, "dir", "chaos-runs/mutants", "directory of programs and of results in progress")
	flag.StringVar(&o.again, "again", "", "measure rows again that were measured: all, convicted or survivors")
	flag.BoolVar(&o.document, "document", false,
		"measure nothing: write "+documentFile+" and "+bugsFile+" from "+resultsFile)
	flag.BoolVar(&o.generated, "generated", false,
		"explore scenarios that are drawn for the lock, instead of those of the catalog; write nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	rows, err := mutants.Rows()
	if err != nil {
		return err
	}
	report, err := mutants.LoadReport(resultsFile)
	if err != nil {
		return err
	}
	if o.document {
		return write(rows, report)
	}
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	m, err := open(ctx, o, rows)
	if err != nil {
		return err
	}
	if o.correct > 0 {
		return judgeCorrect(ctx, o, m, pattern)
	}
	if o.generated {
		return measureGenerated(ctx, o, m, rows, pattern)
	}
	if o.draw != "" {
		drawn := mutants.Draw(rows, o.draw, 10)
		for i, r := range drawn {
			drawn[i] = mutants.StartWith(r, report.Results[r.Name])
		}
		return check(ctx, o, m, drawn, report)
	}
	var todo []mutants.Row
	for _, r := range rows {
		known, ok := report.Results[r.Name]
		again := o.again == "all" || o.again == "convicted" && known.Convicted || o.again == "survivors" && !known.Convicted
		if pattern.MatchString(r.Kind+"/"+r.Name) && (!ok || again) {
			todo = append(todo, mutants.StartWith(r, known))
		}
	}
	report.Budget = o.budget
	err = measure(ctx, o, m, todo, func(r mutants.Row, got mutants.Result) error {
		report.Results[r.Name] = got
		return report.Save(resultsFile)
	})
	if err == nil && o.seeds > 0 {
		report.Coverage, err = mutants.Cover(ctx, m.Programs.Root, m.Programs.Dir, m.Targets, o.seeds)
	}
	return errors.Join(err, write(rows, report))
}

// measureGenerated prints how many of the rows that -only and -draw select are convicted by drawn scenarios.
func measureGenerated(
	ctx context.Context, o options, m *mutants.Measurer, rows []mutants.Row, pattern *regexp.Regexp,
) error {
	var todo []mutants.Row
	for _, r := range rows {
		if r.Equivalent == "" && !r.OnServers() && pattern.MatchString(r.Kind+"/"+r.Name) {
			todo = append(todo, r)
		}
	}
	if o.draw != "" {
		todo = mutants.Draw(todo, o.draw, 10)
	}
	var planted, convicted, harmless, wrongly int
	err := measure(ctx, o, m, todo, func(r mutants.Row, got mutants.Result) error {
		n, of := &convicted, &planted
		if r.Harmless != "" {
			n, of = &wrongly, &harmless
		}
		*of++
		if got.Convicted {
			*n++
		}
		return nil
	})
	fmt.Printf("convicted %d of %d planted bugs, %d of %d harmless changes\n", convicted, planted, wrongly, harmless)
	return err
}

// open builds the programs.
func open(ctx context.Context, o options, rows []mutants.Row) (*mutants.Measurer, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return nil, err
	}
	list := mutants.AllTargets
	if o.generated {
		list = mutants.DrawnTargets
	}
	targets, err := list()
	if err != nil {
		return nil, err
	}
	programs, err := mutants.Build(ctx, root, dir, rows)
	if err != nil {
		return nil, err
	}
	return &mutants.Measurer{
		Programs: programs, Targets: targets, Budget: o.budget, First: o.first,
		Note: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	}, nil
}

// measure measures rows, several at a time, and calls done for each, one at a time.
func measure(
	ctx context.Context, o options, m *mutants.Measurer, rows []mutants.Row,
	done func(mutants.Row, mutants.Result) error,
) error {
	start := time.Now()
	var mu sync.Mutex
	var errs error
	var workers errgroup.Group
	workers.SetLimit(o.jobs)
	for _, r := range rows {
		workers.Go(func() error {
			if ctx.Err() != nil || o.total > 0 && time.Since(start) > o.total {
				return nil
			}
			got, err := m.Measure(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = errors.Join(errs, fmt.Errorf("measuring %s: %w", r.Name, err))
				return nil
			}
			fmt.Println(line(r, got))
			errs = errors.Join(errs, done(r, got))
			return nil
		})
	}
	return errors.Join(workers.Wait(), errs)
}

func line(r mutants.Row, got mutants.Result) string {
	word := "survived"
	if got.Convicted {
		word = fmt.Sprintf("convicted by %s (%s, seed %d)", got.By, got.Property, got.Seed)
	}
	if r.Harmless != "" {
		word = "harmless, " + word
	}
	text := fmt.Sprintf("%s/%s: %s after %d runs, %.1f s", r.Kind, r.Name, word, got.Runs, got.CPU.Seconds())
	if got.Failed > 0 {
		text += fmt.Sprintf(", %d failed", got.Failed)
	}
	return text
}

// judgeCorrect runs the locks without a planted bug in all their scenarios, and fails if one is convicted.
func judgeCorrect(ctx context.Context, o options, m *mutants.Measurer, pattern *regexp.Regexp) error {
	start, runs, wrong, done := time.Now(), 0, 0, make(map[string]bool)
	for _, kind := range slices.Sorted(maps.Keys(m.Targets)) {
		for _, t := range m.Targets[kind] {
			name := t.String()
			if done[name] || t.OnServers() || !pattern.MatchString(kind+"/"+name) || o.total > 0 && time.Since(start) > o.total {
				continue
			}
			done[name] = true
			found, n, err := m.Unexpected(ctx, t, o.correct)
			if err != nil {
				return fmt.Errorf("exploring %s: %w", name, err)
			}
			runs, wrong = runs+n, wrong+len(found)
			for _, f := range found {
				fmt.Printf("%s: %d of %d runs, first seed %d: %s\n", name, f.Runs, n, f.Seed, f.Sentence)
			}
		}
	}
	fmt.Printf("%d scenarios with a lock, %d runs\n", len(done), runs)
	if wrong > 0 {
		return fmt.Errorf("%d kinds of violation by locks without a planted bug", wrong)
	}
	return nil
}

// check measures rows and fails if one is judged worse than in the report.
func check(ctx context.Context, o options, m *mutants.Measurer, rows []mutants.Row, report mutants.Report) error {
	var wrong error
	err := measure(ctx, o, m, rows, func(r mutants.Row, got mutants.Result) error {
		if why := mutants.Judge(r, report.Results[r.Name], got); why != "" {
			wrong = errors.Join(wrong, fmt.Errorf("%s/%s: %s", r.Kind, r.Name, why))
		}
		return nil
	})
	return errors.Join(err, wrong)
}

func write(rows []mutants.Row, report mutants.Report) error {
	if err := report.Save(resultsFile); err != nil {
		return err
	}
	var pages []string
	for _, page := range []string{"docs/contributors/hypotheses.md", "docs/contributors/found.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		pages = append(pages, string(text))
	}
	list := mutants.Bugs(rows, report, pages[0], pages[1])
	return errors.Join(
		os.WriteFile(documentFile, []byte(mutants.Document(rows, report)), 0o644),
		os.WriteFile(dataFile, []byte(mutants.Data(rows, report)), 0o644),
		os.WriteFile(bugsFile, []byte(list.String()), 0o644))
}
