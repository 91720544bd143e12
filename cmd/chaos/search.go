package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/internal/search"
)

func newSearch(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "search",
		Short: "Serve linearizability searches of the checker on standard input",
		Long: `Searches for a legal order of a few operations, in a process of its own so that its memory is
bounded. chaos run and chaos check start it for searches that are hard.`,
		Example: `  chaos search < request.json`,
		Hidden:  true,
		Args:    noArgs(""),
		RunE:    func(*cobra.Command, []string) error { return search.Serve(s.in, s.out) },
	}
}

// searchCommand is the command with which the checker starts newSearch. If the
// executable is not found, the checker gives up hard searches sooner and says so.
func searchCommand() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, "search"}
}
