package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/cluster/docker"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/ledger"
)

func newClean(s streams) *cobra.Command {
	var asJSON bool
	var prefix string
	var at targetFlags
	c := &cobra.Command{
		Use:   "clean",
		Short: "Remove what killed runs left behind",
		Long: `Kills the processes and removes the temporary directories, mounts, containers and networks of
runs whose chaos process no longer exists. It touches only what such a run recorded in its ledger
(a process only if its id and start time still match), containers and networks whose labels name
a ledger that no longer exists, and data directories whose owner file no program has locked, with the
processes that run in them. Runs in progress and run directories are left alone.

With --target it removes the keys that a killed run has left at servers of your own, and nothing else.`,
		Example: `  chaos clean
  chaos clean --json
  chaos clean --target redis://staging.example --prefix lockchaos:ab12cd34ef:`,
		Args: noArgs(""),
		RunE: func(c *cobra.Command, _ []string) error {
			switch _, err := at.address(); {
			case err != nil:
				return err
			case at.url == "" && prefix != "":
				return usage(errors.New("--prefix is for the keys at servers of your own: it needs --target"))
			case at.url != "":
				return cleanTarget(c.Context(), s, at, prefix, asJSON)
			}
			report, err := ledger.Sweep(c.Context(), docker.Remove)
			more, engine := docker.RemoveOrphans(c.Context())
			report.Orphans = append(report.Orphans, more...)
			err = errors.Join(err, engine)
			if asJSON {
				return errors.Join(json.NewEncoder(format.JSON(s.out)).Encode(report), err)
			}
			text := report.String()
			if text == "" && err == nil {
				text = "nothing was left behind\n"
			}
			fmt.Fprint(s.out, text)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print what was removed as a JSON object")
	at.add(c)
	c.Flags().StringVar(&prefix, "prefix", "", "with --target: the `PREFIX` of the run's keys")
	return c
}
