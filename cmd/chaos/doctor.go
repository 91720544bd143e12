package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/machine"
)

func newDoctor(s streams) *cobra.Command {
	var asJSON bool
	var lock, topology string
	var initTimeout time.Duration
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Show what this machine supports and how to add the rest",
		Long: `Checks each feature that scenarios need, and prints what it is used for and how to install it.
Exit code 0 if scenarios can run on real servers here, 69 if not.

With --lock it starts one server and two clients of that lock instead, and checks that they conform to the protocol:
source address, replies, refused requests, the outcome after a lost reply, close. Run it with a client of your own
before the first scenario. Exit code 0 if the clients conform to the protocol, 1 if not.`,
		Example: `  chaos doctor
  chaos doctor --lock 'exec:python3 client.py'
  chaos doctor --lock 'exec:python3 client.py' --topology servers.yaml
  chaos doctor --json`,
		Args: noArgs(""),
		RunE: func(c *cobra.Command, _ []string) error {
			if lock != "" {
				return doctorLock(c.Context(), s, lock, topology, initTimeout, asJSON)
			}
			return doctor(c.Context(), s, asJSON)
		},
	}
	c.Flags().StringVar(&lock, "lock", "", "check the client of a lock: a name of chaos list locks, or exec:COMMAND")
	c.Flags().StringVar(&topology, "topology", "", "with --lock: a scenario `FILE` with servers of your own, or the word "+
		"none (default: one server that the lock runs on)")
	c.Flags().DurationVar(&initTimeout, "init-timeout", 0, "with --lock: how long to wait for the client's reply to init")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return c
}

func doctor(ctx context.Context, s streams, asJSON bool) error {
	all := machine.Diagnose(ctx)
	if asJSON {
		if err := s.json(all); err != nil {
			return err
		}
	} else {
		printDiagnoses(s, all)
	}
	for _, d := range all {
		if d.Required && !d.OK {
			return &codeError{code: exitEnvironment}
		}
	}
	return nil
}

func printDiagnoses(s streams, all []machine.Diagnosis) {
	w := s.table()
	for _, d := range all {
		mark := "ok"
		switch {
		case !d.OK && d.Required:
			mark = "MISSING"
		case !d.OK:
			mark = "no"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", mark, d.Feature, d.Detail)
		if !d.OK {
			fmt.Fprintf(w, "\t\tused for: %s\n\t\tto add it: %s\n", d.UsedFor, d.Fix)
		}
	}
	_ = w.Flush()
}
