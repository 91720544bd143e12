package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/evaluation"
	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/reports/export"
)

func newDiff(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two runs, two suites, or two tests of a lock",
		Long: `Compares B with the earlier A, both run directories, or both results of chaos suite or of chaos test,
and prints Markdown.

For two runs: settings, verdict and properties that differ, both stories side by side, latencies, and on
backend sim the first event that differs. For two suites: which scenarios no longer end as expected
(new), end as expected again (fixed), or depend on the seed (flaky). For two tests: which causes are new,
gone or the same, and how often each property held.

Exit codes: 0 B is not worse, 1 the verdict, a property, a threshold or a scenario of the suite is worse, or
the test has a new finding of the lock's own that its baseline does not accept.
Latencies alone never count as worse; limit them with thresholds in the scenario.`,
		Example: `  chaos diff chaos-runs/failover/20260102T030405.000Z-7 chaos-runs/latest
  chaos diff last-night chaos-suite >> "$GITHUB_STEP_SUMMARY"
  chaos diff main/test.json chaos-test/test.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage(fmt.Errorf("diff needs two run directories, or two results of chaos suite or chaos test; "+
					"got %d (see chaos diff --help)", len(args)))
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
	switch {
	case isSuite(a) && isSuite(b):
		return diffSuites(s, a, b, asJSON)
	case evaluation.Is(a) && evaluation.Is(b):
		d, err := evaluation.DiffOf(a, b)
		if err != nil {
			return usage(err)
		}
		return s.difference(d, d.Markdown, d.Worse, asJSON)
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
	return s.difference(d, d.WriteMarkdown, d.Worse, asJSON)
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
	markdown := func(w io.Writer) error { return suite.WriteDiff(w, changes) }
	return s.difference(changes, markdown, suite.Worse(changes), asJSON)
}

// difference prints d; the error is the exit code if it is worse.
func (s streams) difference(d any, markdown func(io.Writer) error, worse, asJSON bool) (err error) {
	if asJSON {
		err = s.json(d)
	} else {
		err = markdown(s.out)
	}
	if err == nil && worse {
		return &codeError{code: exitUnsafe}
	}
	return err
}
