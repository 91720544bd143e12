package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
)

func newShrink(s streams) *cobra.Command {
	var property string
	var asJSON bool
	c := &cobra.Command{
		Use:   "shrink DIR",
		Short: "Find the smallest run with the same violation",
		Long: `Takes an unsafe run of backend sim and removes what it can (faults, clients, keys, time, random
durations) as long as the run still violates the same property in the same way. It writes the
smaller scenario into the run directory and prints what was removed and what was needed.`,
		Example: `  chaos explore --scenario failover --seeds 100
  chaos shrink chaos-runs/latest
  chaos shrink chaos-runs/latest --property fencing --json`,
		Args: oneArg(runDirArg),
		RunE: func(c *cobra.Command, args []string) error {
			return shrinkRun(c, s, args[0], checker.Property(property), asJSON)
		},
	}
	c.Flags().StringVar(&property, "property", "", "violated property to keep (default: the first one)")
	_ = c.RegisterFlagCompletionFunc("property", completeNames(propertyNames))
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as a JSON object")
	return c
}

// shrunk is a smaller run, as --json prints it.
type shrunk struct {
	explore.Shrunk
	Seed      uint64              `json:"seed"`
	Variation scenarios.Variation `json:"variation,omitempty"`
	File      string              `json:"file,omitempty"` // where the scenario was written
}

func shrinkRun(c *cobra.Command, s streams, path string, property checker.Property, asJSON bool) error {
	dir, m, err := simulatedRun(path)
	if err != nil {
		return err
	}
	scenario, err := scenarioOf(m)
	if err != nil {
		return err
	}
	if err := knownProperty(string(property)); property != "" && err != nil {
		return err
	}
	kind, err := kindOf(dir, property)
	if err != nil {
		return err
	}
	noteVersion(s, m)
	ctx, stop := interruptible(c.Context(), s)
	defer stop()
	pool, err := openPool(1)
	if err != nil {
		return err
	}
	defer pool.Close()
	got, err := explore.Shrink(ctx, pool.Do, scenario, explore.Job{Seed: m.Seed, Variation: m.Variation}, kind)
	switch {
	case errors.Is(err, explore.ErrNoViolation):
		return usage(err)
	case err != nil && got.YAML == "":
		return err
	}
	sh := shrunk{Shrunk: got, Seed: m.Seed, Variation: m.Variation, File: shrunkFile(dir.Path, kind)}
	if err := os.WriteFile(sh.File, []byte(got.YAML), 0o644); err != nil {
		return fmt.Errorf("writing the shrunk scenario: %w", err)
	}
	if asJSON {
		return errors.Join(s.json(sh), err)
	}
	fmt.Fprint(s.out, sh.text())
	return err
}

// shrunkFile is the path of the shrunk scenario.
func shrunkFile(dir string, k explore.Kind) string {
	return filepath.Join(dir, rundir.SafeName("shrunk-"+string(k.Property)+".yaml"))
}

// kindOf is the first kind of violation of the run, of that property if one is named.
func kindOf(dir *rundir.Dir, property checker.Property) (explore.Kind, error) {
	j, err := dir.ReadVerdict()
	if err != nil {
		return explore.Kind{}, badPath(err)
	}
	for _, k := range explore.KindsOf(j) {
		if property == "" || k.Property == property {
			return k, nil
		}
	}
	if property == "" {
		return explore.Kind{}, usage(fmt.Errorf("nothing to shrink: the run violates no property (verdict: %s)", j.Verdict))
	}
	return explore.Kind{}, usage(fmt.Errorf("nothing to shrink: the run does not violate %q", property))
}

// text is the result for people.
func (sh shrunk) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, seed %d, shrunk in %s:\n", sh.Kind, sh.Seed, format.Count(sh.Tried, "run"))
	if len(sh.Story) == 0 {
		b.WriteString("  nothing could be removed\n")
	}
	for _, line := range sh.Story {
		fmt.Fprintf(&b, "  - %s\n", format.Line(line))
	}
	p := sh.Scenario.Workload.Defaults()
	fmt.Fprintf(&b, "  remaining: %s on %s for %s\n",
		format.Count(p.Clients, "client"), format.Count(p.Keys, "key"), format.Duration(sh.Scenario.Duration))
	for _, f := range sh.Scenario.Faults {
		fmt.Fprintf(&b, "    %s\n", format.Line(f.String()))
	}
	fmt.Fprintf(&b, "  %s\n", format.Line(sh.Run.Sentence))
	if sh.File != "" {
		job := explore.Job{Name: format.ShellWord(sh.File), Seed: sh.Seed, Variation: sh.Variation}
		fmt.Fprintf(&b, "  %s\n", job.Command())
	}
	return b.String()
}
