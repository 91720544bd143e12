package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/nearest"
)

// version is set by the build (-ldflags "-X main.version=…"), or see versionOf.
var version = unversioned

const unversioned = "dev"

// streams are the input and the outputs of the program: results go to out, progress and errors to err, also from
// several goroutines.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func (s streams) note(text string, args ...any) {
	fmt.Fprintln(s.err, format.Printable(fmt.Sprintf(text, args...)))
}

// table aligns columns that are separated by tabs, on standard output, when it is flushed.
func (s streams) table() *tabwriter.Writer { return tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0) }

// json prints v, indented, on standard output.
func (s streams) json(v any) error {
	return format.WriteJSON(s.out, v)
}

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "chaos",
		Short: "Test a distributed lock while servers and clients fail",
		Long: `chaos drives a distributed lock with concurrent clients, injects faults (it kills masters,
forces failovers, stops clients), records the history and judges it.
Every run leaves an HTML page that shows what happened and why.

` + exitHelp,
		Example: `  chaos run --scenario failover        break a lock with a failover, in less than ten seconds
  chaos list scenarios                 list the built-in scenarios
  chaos check chaos-runs/latest        judge a recorded history again
  chaos doctor                         show which scenarios can run on this machine`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          unknownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newTest(s), newInit(s), newRun(s), newExplore(s), newShrink(s), newReplay(s), newSuite(s), newIndex(s),
		newServe(s), newDiff(s), newWorker(s))
	root.AddCommand(newCheck(s), newConvert(s), newReport(s), newList(s), newAdapters(s), newDoctor(s), newClean(s),
		newClient(s), newSearch(s))
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			describeCompletion(c)
		}
	}
	return root
}

// describeCompletion gives cobra's command a help text, and makes an unknown shell an error.
func describeCompletion(c *cobra.Command) {
	c.Short = "Print a completion script for a shell"
	c.Long = `Prints a script that completes commands, flags and names, such as those of scenarios. The help of each
shell says how to load its script.`
	c.Example = `  source <(chaos completion bash)
  chaos completion fish > ~/.config/fish/completions/chaos.fish`
	c.Args, c.RunE = unknownCommand, func(c *cobra.Command, _ []string) error { return c.Help() }
}

// newHelp is cobra's help command, except that an unknown name is an error.
func newHelp() *cobra.Command {
	c := &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Long:  `Prints the help of a command, as COMMAND --help does.`,
		Example: `  chaos help run
  chaos help suite merge`,
		RunE: func(c *cobra.Command, args []string) error {
			of, rest, err := c.Root().Find(args)
			switch {
			case err != nil:
				return usage(err)
			case len(rest) > 0 && !of.HasSubCommands():
				return usage(fmt.Errorf("%s has no command %s (see %s --help)", of.CommandPath(), format.ShellWord(rest[0]),
					of.CommandPath()))
			case len(rest) > 0:
				return unknownCommand(of, rest)
			}
			of.InitDefaultHelpFlag()
			of.InitDefaultVersionFlag()
			return of.Help()
		},
	}
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if of, rest, err := c.Root().Find(args); err == nil && len(rest) == 0 {
			names = commandNames(of)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

// known refuses a value that is not one of names; what begins the error, such as "--backend: unknown backend".
func known(what, value string, names []string) error {
	if slices.Contains(names, value) {
		return nil
	}
	return usage(fmt.Errorf("%s %q%s", what, value, nearest.Hint(value, names)))
}

func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage(fmt.Errorf("unknown command %q%s", args[0], nearest.Hint(args[0], commandNames(c))))
}

// commandNames are the commands of c that help shows.
func commandNames(c *cobra.Command) (names []string) {
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return names
}

// flagError suggests the flag that was probably meant, or the command whose flag it is.
func flagError(c *cobra.Command, err error) error {
	if before := c.Flags().Args(); c.HasSubCommands() && c.Args != nil && c.Args(c, before) != nil {
		return c.Args(c, before)
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usage(fmt.Errorf("--%s %s: must be %s (see %s --help)", invalid.GetFlag().Name,
			format.ShellWord(invalid.GetValue()), valueHelp(invalid.GetFlag().Value.Type()), c.CommandPath()))
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

// valueHelp describes the values of a flag of that pflag type.
func valueHelp(kind string) string {
	switch kind {
	case "uint64":
		return fmt.Sprintf("an integer from 0 to %d", uint64(math.MaxUint64))
	case "int":
		return "an integer"
	case "duration":
		return "a duration with a unit, such as 5s or 500ms"
	case "bool":
		return "true or false"
	}
	return "a " + kind
}

// noArgs refuses positional arguments; hint names the alternative, if there is one.
func noArgs(hint string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usage(fmt.Errorf("%s takes no arguments, got %s%s (see %s --help)", c.Name(), format.ShellWord(args[0]), hint,
			c.CommandPath()))
	}
}

// oneArg is cobra.ExactArgs(1), with the name of the missing argument and exit code 64.
func oneArg(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch len(args) {
		case 1:
			return nil
		case 0:
			return usage(fmt.Errorf("%s needs %s (see %s --help)", c.Name(), what, c.CommandPath()))
		}
		return usage(fmt.Errorf("%s takes one argument, %s; got %d (see %s --help)", c.Name(), what, len(args),
			c.CommandPath()))
	}
}

// completeNames completes a flag with one of names.
func completeNames(names func() []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return names(), cobra.ShellCompDirectiveNoFileComp
	}
}
