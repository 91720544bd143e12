package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/lockchaos/lockchaos/internal/nearest"
)

// version is set by the build (-ldflags "-X main.version=…").
var version = "dev"

// streams are where the program reads and writes: results on out, progress and
// complaints on err.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func (s streams) note(format string, args ...any) {
	fmt.Fprintln(s.err, harmless(fmt.Sprintf(format, args...)))
}

// json prints v as one JSON object, or list, on standard output.
func (s streams) json(v any) error {
	e := json.NewEncoder(s.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// terminal is the width of w in columns, or 0 if it is not a terminal.
func terminal(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 80
	}
	return width
}

// colour says whether w should get colours (https://no-color.org).
func colour(w io.Writer) bool { return terminal(w) > 0 && os.Getenv("NO_COLOR") == "" }

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "chaos",
		Short: "finds out whether a distributed lock keeps its promise when things break",
		Long: `chaos drives a distributed lock with concurrent clients, breaks what it stands on
- kills masters, forces failovers, stops clients - and judges the recorded history.
Every run leaves one HTML page that shows what happened and why.

` + exitHelp,
		Example: `  chaos run --scenario failover        lose a lock in a failover, in under ten seconds
  chaos list scenarios                 what there is to run
  chaos check chaos-runs/latest        judge a recorded history again
  chaos doctor                         what this machine can do`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSuchCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newRun(s), newExplore(s), newShrink(s), newReplay(s), newWorker(s))
	root.AddCommand(newCheck(s), newConvert(s), newReport(s), newList(s), newDoctor(s), newClean(s),
		newClient(s), newSearch(s))
	return root
}

func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return usage(fmt.Errorf("no command is called %q%s", args[0], nearest.Hint(args[0], names)))
}

// flagError suggests the flag that was probably meant.
func flagError(c *cobra.Command, err error) error {
	var wrong *pflag.InvalidValueError
	if errors.As(err, &wrong) {
		return usage(fmt.Errorf("--%s %s: %s (see %s --help)", wrong.GetFlag().Name, shellQuote(wrong.GetValue()),
			takes(wrong.GetFlag().Value.Type()), c.CommandPath()))
	}
	word, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return usage(fmt.Errorf("%w (see %s --help)", err, c.CommandPath()))
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if name := nearest.To(word, names); name != "" {
		return usage(fmt.Errorf("%w (did you mean --%s?)", err, name))
	}
	return usage(fmt.Errorf("%w (see %s --help)", err, c.CommandPath()))
}

// takes says what a flag of that type wants, in words that no programmer is needed for.
func takes(kind string) string {
	switch kind {
	case "uint64":
		return fmt.Sprintf("it takes a whole number from 0 to %d", uint64(math.MaxUint64))
	case "int":
		return "it takes a whole number"
	case "duration":
		return "it takes a time with its unit, such as 5s or 500ms"
	case "bool":
		return "it takes true or false"
	}
	return "it takes a " + kind
}

// exactly is cobra.ExactArgs with our exit code and what is missing.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			given := fmt.Sprintf("%d", len(args))
			if len(args) == 0 {
				given = "none"
			}
			return usage(fmt.Errorf("%s takes %s, and was given %s (see %s --help)", c.Name(), what, given, c.CommandPath()))
		}
		return nil
	}
}
