package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
)

func newSearch(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "search",
		Short: "answer one question of the checker on standard input",
		Long: "Searches a legal order for a few operations, as a process of its own whose memory is bounded. chaos run and " +
			"chaos check start it where a search is hard.",
		Hidden: true,
		Args:   exactly(0, "no arguments"),
		RunE:   func(*cobra.Command, []string) error { return checker.ServeSearch(s.in, s.out) },
	}
}

// searchCommand is how the checker starts newSearch. Without a file of this
// program hard searches are given up sooner, and the result says so.
func searchCommand() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, "search"}
}
