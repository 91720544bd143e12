package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/cluster/docker"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

func newClean(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "clean",
		Short: "end whatever an interrupted run left behind",
		Long: `Ends the processes and removes the temporary folders, containers and networks of runs whose
chaos process is gone. Only what such a run wrote down in its ledger is touched, and a process
only if it still is the very one: same number, same start time; and containers whose labels name
a ledger that is not there any more. Runs under way and run directories are left alone.`,
		Example: "  chaos clean",
		Args:    exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			report, err := ledger.Sweep(c.Context(), docker.Remove)
			if err == nil {
				report.Orphans, err = docker.RemoveOrphans(c.Context())
			}
			if asJSON {
				return errors.Join(json.NewEncoder(s.out).Encode(report), err)
			}
			fmt.Fprint(s.out, report)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print what was done as JSON")
	return c
}
