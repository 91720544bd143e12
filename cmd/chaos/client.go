package main

import (
	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/locks/openable"
)

func newClient(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "client",
		Short: "Serve the client protocol on standard input and output",
		Long: `Serves the client protocol (docs/reference/protocol.md) for the built-in locks: one JSON object per line.
chaos run starts it; run it by hand to try the protocol out.`,
		Example: `  echo '{"id":1,"op":"close"}' | chaos client`,
		Hidden:  true,
		Args:    noArgs(""),
		RunE: func(c *cobra.Command, _ []string) error {
			return client.Serve(c.Context(), s.in, s.out, openable.Lookup)
		},
	}
}
