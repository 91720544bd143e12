package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/backend/servers"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
)

func newReplay(s streams) *cobra.Command {
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "replay DIR",
		Short: "Repeat a run with the same scenario, seed and plan",
		Long: `Repeats the run of a run directory: the same scenario, seed and backend. A run on backend sim gives
the same history, byte by byte; if it does not, the exit code is 70. On real servers the seed
determines the workload and the fault plan, but not the timing.`,
		Example: `  chaos replay chaos-runs/latest
  chaos replay chaos-runs/failover/latest --json`,
		Args: oneArg(runDirArg),
		RunE: func(c *cobra.Command, args []string) error { return replay(c, s, args[0], out, asJSON) },
	}
	c.Flags().StringVar(&out, "out", rundir.Root, "`DIR` for run directories")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as a JSON object")
	return c
}

func replay(c *cobra.Command, s streams, path, outDir string, asJSON bool) error {
	dir, m, err := openRun(path)
	if err != nil {
		return err
	}
	if m.Backend == servers.Target {
		return usage(fmt.Errorf("the run used servers of your own (--target); repeat it with: %s", m.Repeat))
	}
	scenario, err := scenarioOf(m)
	if err != nil {
		return err
	}
	noteVersion(s, m)
	ctx, stop := interruptible(c.Context(), s)
	defer stop()
	out, failed := perform(ctx, s, runOptions{
		scenario: m.Scenario, backend: m.Backend, seed: m.Seed, variation: m.Variation, out: outDir, command: m.Repeat,
		image: m.Versions["image"],
	}, scenario)
	if out == nil || out.Dir == nil {
		return failed
	}
	err = publish(ctx, s, out, runOptions{json: asJSON}, failed)
	var verdict *codeError
	if errors.As(err, &verdict) && verdict.err == nil {
		err = nil // an unsafe verdict is no failure of a replay
	}
	if err != nil || failed != nil || !m.Deterministic {
		return errors.Join(failed, err)
	}
	return same(s, dir, out.Dir)
}

// noteVersion warns if another version of chaos made the run.
func noteVersion(s streams, m rundir.Manifest) {
	if was := m.Versions["chaos"]; was != version {
		s.note("warning: the run was made by chaos %s, this is %s; the result may differ for that reason", was, version)
	}
}

// same compares the histories of two runs.
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
		s.note("the history is the same, byte by byte (%s)", format.Count(len(x), "byte"))
		return nil
	}
	n, first, second := explore.FirstDifference(string(x), string(y))
	return &codeError{exitInternal,
		fmt.Errorf("the history differs; line %d was\n  %s\nand is\n  %s", n, first, second)}
}

// scenarioOf parses the scenario of a run.
func scenarioOf(m rundir.Manifest) (scenarios.Scenario, error) {
	scenario, err := scenarios.Parse([]byte(m.YAML))
	if err != nil {
		return scenario, usage(fmt.Errorf("the scenario in %s: %w", rundir.ManifestFile, err))
	}
	return scenario, nil
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

// simulatedRun opens the directory of a run on backend sim.
func simulatedRun(path string) (*rundir.Dir, rundir.Manifest, error) {
	dir, m, err := openRun(path)
	if err == nil && !m.Deterministic {
		err = usage(fmt.Errorf("the run was on backend %s; only runs on sim can be shrunk: "+
			"chaos run --backend sim --scenario %s", m.Backend, m.Scenario))
	}
	return dir, m, err
}
