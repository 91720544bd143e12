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
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/scenarios"
)

func newShrink(s streams) *cobra.Command {
	var property string
	var asJSON bool
	c := &cobra.Command{
		Use:   "shrink DIR",
		Short: "find the smallest run that still violates the same",
		Long: `Takes a simulated run that was unsafe and leaves out whatever it can - faults, clients, keys, time, chance -
as long as the run still violates the same property in the same way. The smaller scenario is written
into the run directory, and the story of what was left out is told.`,
		Example: `  chaos explore --scenario failover --seeds 100
  chaos shrink chaos-runs/latest
  chaos shrink chaos-runs/latest --property fencing --json`,
		Args: exactly(1, "a run directory"),
		RunE: func(c *cobra.Command, args []string) error {
			return shrinkRun(c, s, args[0], checker.Property(property), asJSON)
		},
	}
	c.Flags().StringVar(&property, "property", "", "the violated property to keep (default: the first one)")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as one JSON object")
	return c
}

// shrunk is a smaller run, as --json prints it.
type shrunk struct {
	explore.Shrunk
	Seed      uint64 `json:"seed"`
	Variation uint64 `json:"variation,omitempty"`
	File      string `json:"file,omitempty"` // where the scenario was written
}

func shrinkRun(c *cobra.Command, s streams, path string, property checker.Property, asJSON bool) error {
	dir, m, err := simulatedRun(path)
	if err != nil {
		return err
	}
	scenario, err := scenarios.Parse([]byte(m.YAML), nil)
	if err != nil {
		return usage(fmt.Errorf("the scenario of that run: %w", err))
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
	got, err := explore.Shrink(ctx, pool, scenario, explore.Job{Seed: m.Seed, Variation: m.Variation}, kind)
	switch {
	case errors.Is(err, explore.ErrNoViolation):
		return usage(err)
	case err != nil && got.YAML == "":
		return err
	}
	sh := shrunk{Shrunk: got, Seed: m.Seed, Variation: m.Variation, File: smallFile(dir.Path, kind)}
	if err := os.WriteFile(sh.File, []byte(got.YAML), 0o644); err != nil {
		return fmt.Errorf("writing the smaller scenario: %w", err)
	}
	if asJSON {
		return errors.Join(s.json(sh), err)
	}
	fmt.Fprint(s.out, sh.text())
	return err
}

// smallFile is where the scenario of a smaller run is written.
func smallFile(dir string, k explore.Kind) string {
	return filepath.Join(dir, rundir.SafeName("smaller-"+string(k.Property)+".yaml"))
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
		return explore.Kind{}, usage(fmt.Errorf("that run violates nothing: it was %s", j.Verdict))
	}
	return explore.Kind{}, usage(fmt.Errorf("that run does not violate %q", property))
}

// text is the story for people.
func (sh shrunk) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, seed %d, made smaller in %s:\n", sh.Kind, sh.Seed, plural(sh.Tried, "run"))
	if len(sh.Story) == 0 {
		b.WriteString("  nothing could be left out\n")
	}
	for _, line := range sh.Story {
		fmt.Fprintf(&b, "  - %s\n", line)
	}
	p := sh.Scenario.Workload.Defaults()
	fmt.Fprintf(&b, "  what is left: %s on %s for %v\n",
		plural(p.Clients, "client"), plural(p.Keys, "key"), sh.Scenario.Duration)
	for _, f := range sh.Scenario.Faults {
		fmt.Fprintf(&b, "    %s\n", f)
	}
	fmt.Fprintf(&b, "  %s\n", harmless(sh.Answer.Sentence))
	if sh.File != "" {
		job := explore.Job{Name: shellQuote(sh.File), Seed: sh.Seed, Variation: sh.Variation}
		fmt.Fprintf(&b, "  %s\n", repeatOf(job))
	}
	return b.String()
}
