package main

import (
	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/client"
)

func newClient(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "client",
		Short: "be one native client on standard input and output",
		Long: "Speaks the client protocol (docs/protocol.md): one JSON object a line. " +
			"chaos run starts it; people need it to try the protocol out.",
		Hidden: true,
		Args:   exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return client.Serve(c.Context(), s.in, s.out)
		},
	}
}
