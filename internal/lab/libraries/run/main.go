// Command run tests the locks of the adapters with `chaos test` and writes docs/contributors/verdicts.md.
//
//	go run ./internal/lab/libraries/run                          every lock that has no test.json in -out (82 minutes)
//	go run ./internal/lab/libraries/run -only '^redis-py/'       some of them
//	go run ./internal/lab/libraries/run -- --jobs 1              with more flags of chaos test
//	go run ./internal/lab/libraries/run -pictures                test nothing: draw findings that have no picture
//	go run ./internal/lab/libraries/run -document -out DIR       test nothing: add the tests in DIR, and write the page
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/internal/evaluation"
	"github.com/lockchaos/lockchaos/internal/lab/libraries"
)

// Files, in the repository.
const (
	resultsFile  = "internal/lab/libraries/results.json"
	documentFile = "docs/contributors/verdicts.md"
)

type options struct {
	only, chaos, time, seed, out string
	document, draws              bool
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "regular expression for LIBRARY/KIND: test these locks")
	flag.StringVar(&o.chaos, "chaos", "bin/chaos", "the program")
	flag.StringVar(&o.time, "time", "2m", "time for each lock")
	flag.StringVar(&o.seed, "seed", "1", "seed of the tests")
	flag.StringVar(&o.out, "out", "chaos-runs/verdicts", "directory of the tests; a lock that has one is skipped")
	flag.BoolVar(&o.document, "document", false, "test nothing: write "+documentFile)
	flag.BoolVar(&o.draws, "pictures", false, "test nothing: draw runs of the findings that have no picture")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.draws {
		all, err := libraries.Load(resultsFile)
		return errors.Join(err, o.pictures(ctx, all))
	}
	if !o.document {
		if err := o.test(ctx); err != nil {
			return err
		}
	}
	all, err := libraries.Load(resultsFile)
	if err != nil {
		return err
	}
	if all, err = libraries.Read(o.out, all); err != nil {
		return err
	}
	if err := libraries.Save(resultsFile, all); err != nil {
		return err
	}
	page, err := libraries.Document(all)
	if err != nil {
		return err
	}
	return os.WriteFile(documentFile, []byte(page), 0o644)
}

// test tests the locks one after another.
func (o options) test(ctx context.Context) error {
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	for _, lock := range adapters.Names() {
		dir := filepath.Join(o.out, strings.ReplaceAll(lock, "/", "_"))
		if _, err := os.Stat(filepath.Join(dir, evaluation.JSONFile)); err == nil || !pattern.MatchString(lock) {
			continue
		}
		args := []string{"test", "--lock", lock, "--time", o.time, "--seed", o.seed, "--out", dir}
		c := exec.CommandContext(ctx, o.chaos, append(args, flag.Args()...)...)
		c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // it stops the servers
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		var ended *exec.ExitError
		if err := c.Run(); err != nil && !errors.As(err, &ended) { // its exit code is in the results, too
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
