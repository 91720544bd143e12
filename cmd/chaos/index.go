package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/suite"
)

func newIndex(s streams) *cobra.Command {
	var add []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "index DIR",
		Short: "Keep the results of nightly suites and draw a page of them",
		Long: `Keeps history/suite.jsonl in a folder (a git branch, a synchronized bucket): one line for each run of
every suite that was added; lines are only appended. Draws index.html, a grid of the scenarios over the
last 30 nights, with the rate of runs that were not as expected and its 95 % interval (Wilson).

An alert is a verdict that has changed and was reproduced with another seed.

Exit codes: 0 no alert, 1 an alert.`,
		Example: `  chaos suite --backend sim --repeat 3; chaos index nights --add chaos-suite`,
		Args:    oneArg("a folder for the history"),
		RunE: func(c *cobra.Command, args []string) error {
			return index(c.Context(), s, args[0], add, asJSON)
		},
	}
	c.Flags().StringArrayVar(&add, "add", nil, "add the suite in `DIR`; may be repeated; adding it again changes nothing")
	c.Flags().BoolVar(&asJSON, "json", false, "print the rates and alerts as a JSON list")
	return c
}

// lockHistory locks the history in dir. It says so if it waits, and an interrupt ends the wait.
func lockHistory(ctx context.Context, s streams, dir string) (io.Closer, error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	lock, err := suite.LockHistory(ctx, dir, func() {
		s.note("waiting for another program that is using the history in %s", dir)
	})
	if errors.Is(err, context.Canceled) {
		return nil, &codeError{exitInterrupted, err}
	}
	return lock, unusable(err)
}

func index(ctx context.Context, s streams, dir string, add []string, asJSON bool) error {
	for _, from := range add { // before it makes a folder
		if _, err := suite.Read(from); err != nil {
			return unusable(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, suite.HistoryFile)); len(add) == 0 && errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Errorf("index: %s has no %s: add a suite with --add", dir, suite.HistoryFile))
	}
	lock, err := lockHistory(ctx, s, dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	h, err := suite.OpenHistory(dir)
	if err != nil {
		return usage(err)
	}
	for _, from := range add {
		if err := h.Add(from); err != nil {
			return unusable(err)
		}
	}
	if err := h.WritePage(); err != nil {
		return err
	}
	trends, alerts := h.Trends(), 0
	for _, t := range trends {
		if t.Alert != "" {
			alerts++
		}
		if t.Alert != "" && !asJSON {
			fmt.Fprintf(s.out, "ALERT  %s on %s: %s\n", format.Printable(t.Scenario), t.Backend, t.Alert)
		}
	}
	if asJSON {
		if err := s.json(trends); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(s.out, "%s of %s\n%s\n", format.Count(alerts, "alert"), format.Count(len(trends), "scenario"),
			filepath.Join(dir, suite.PageFile))
	}
	if alerts > 0 {
		return &codeError{code: exitUnsafe}
	}
	return nil
}
