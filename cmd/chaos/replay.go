package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
)

func newReplay(s streams) *cobra.Command {
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "replay DIR",
		Short: "run the same scenario with the same seed and plan again",
		Long: `Runs what a run directory holds again: the scenario as it was run, the seed, the backend. A simulated run is
the same again, byte by byte, and it is an error (70) if it is not; on real servers the seed fixes workload and
plan, and the kernel decides the rest.`,
		Example: `  chaos replay chaos-runs/latest
  chaos replay chaos-runs/failover/latest --json`,
		Args: exactly(1, "a run directory"),
		RunE: func(c *cobra.Command, args []string) error { return replay(c, s, args[0], out, asJSON) },
	}
	c.Flags().StringVar(&out, "out", rundir.Root, "folder for run directories")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as one JSON object")
	return c
}

func replay(c *cobra.Command, s streams, path, folder string, asJSON bool) error {
	dir, m, err := openRun(path)
	if err != nil {
		return err
	}
	scenario, err := scenarios.Parse([]byte(m.YAML), nil)
	if err != nil {
		return usage(fmt.Errorf("the scenario of that run: %w", err))
	}
	noteVersion(s, m)
	ctx, stop := interruptible(c.Context(), s)
	defer stop()
	out, failed := perform(ctx, s, runOptions{
		scenario: m.Scenario, backend: m.Backend, seed: m.Seed, variation: m.Variation, out: folder, again: m.Repeat,
		image: m.Versions["image"],
	}, scenario)
	if out == nil || out.Dir == nil {
		return failed
	}
	err = publish(s, out, runOptions{json: asJSON}, failed)
	var verdict *codeError
	if errors.As(err, &verdict) && verdict.err == nil {
		err = nil // what the run was found to be is no error of a replay
	}
	if err != nil || failed != nil || !m.Deterministic {
		return errors.Join(failed, err)
	}
	return same(s, dir, out.Dir)
}

// noteVersion says so if another program made the run.
func noteVersion(s streams, m rundir.Manifest) {
	if was := m.Versions["chaos"]; was != version {
		s.note("that run was made by chaos %s, this is %s: what differs may differ because of that", was, version)
	}
}

// same compares two histories.
func same(s streams, a, b *rundir.Dir) error {
	x, err := os.ReadFile(a.File(rundir.HistoryFile))
	if err != nil {
		return badPath(err)
	}
	y, err := os.ReadFile(b.File(rundir.HistoryFile))
	if err != nil {
		return err
	}
	if bytes.Equal(x, y) {
		s.note("the history is the same, byte by byte: %d bytes", len(x))
		return nil
	}
	n, first, again := explore.FirstDifference(string(x), string(y))
	return &codeError{exitInternal,
		fmt.Errorf("the history is not the same; line %d was\n  %s\nand is\n  %s", n, first, again)}
}

// openRun opens a run directory with its manifest.
func openRun(path string) (*rundir.Dir, rundir.Manifest, error) {
	dir, err := openDir(path)
	if err != nil {
		return nil, rundir.Manifest{}, err
	}
	m, err := dir.ReadManifest()
	if err != nil {
		return nil, m, badPath(err)
	}
	return dir, m, nil
}

// simulatedRun opens the directory of a run on sim.
func simulatedRun(path string) (*rundir.Dir, rundir.Manifest, error) {
	dir, m, err := openRun(path)
	if err == nil && !m.Deterministic {
		err = usage(fmt.Errorf("that run was on backend %s, and only simulated ones are the same again: "+
			"chaos run --backend sim --scenario %s", m.Backend, m.Scenario))
	}
	return dir, m, err
}
