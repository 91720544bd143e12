package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/reports/export"
)

func newDiff(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two runs, or two suites",
		Long: `Compares B with the earlier A, both run directories or both results of chaos suite, and prints Markdown.

For two runs: settings, verdict and properties that differ, both stories side by side, latencies, and on
backend sim the first event that differs. For two suites: which scenarios no longer end as expected
(new), end as expected again (fixed), or depend on the seed (flaky).

Exit codes: 0 B is not worse, 1 the verdict, a property, a threshold or a scenario of the suite is worse.
Latencies alone never count as worse; limit them with thresholds in the scenario.`,
		Example: `  chaos diff chaos-runs/failover/20260102T030405.000Z-7 chaos-runs/latest
  chaos diff last-night chaos-suite >> "$GITHUB_STEP_SUMMARY"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage(fmt.Errorf("diff needs two run directories, or two results of chaos suite; got %d"+
					" (see chaos diff --help)", len(args)))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return diff(s, args[0], args[1], asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the differences as JSON")
	return c
}

func diff(s streams, a, b string, asJSON bool) error {
	isSuite := func(path string) bool { return exists(filepath.Join(path, suite.JSONFile)) }
	if isSuite(a) && isSuite(b) {
		return diffSuites(s, a, b, asJSON)
	}
	first, err := loadRun(a)
	if err != nil {
		return err
	}
	second, err := loadRun(b)
	if err != nil {
		return err
	}
	d, err := export.Diff(first, second)
	if err != nil {
		return err
	}
	if asJSON {
		err = s.json(d)
	} else {
		err = d.WriteMarkdown(s.out)
	}
	return worseError(err, d.Worse)
}

func diffSuites(s streams, a, b string, asJSON bool) error {
	first, err := suite.Read(a)
	if err != nil {
		return usage(err)
	}
	second, err := suite.Read(b)
	if err != nil {
		return usage(err)
	}
	changes := suite.Diff(first, second)
	if asJSON {
		err = s.json(changes)
	} else {
		err = suite.WriteDiff(s.out, changes)
	}
	return worseError(err, suite.Worse(changes))
}

func worseError(err error, worse bool) error {
	if err == nil && worse {
		return &codeError{code: exitUnsafe}
	}
	return err
}
