package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/cluster/docker"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/reports"
	"github.com/lockchaos/lockchaos/scenarios"
)

type runOptions struct {
	scenario  string
	lock      string
	backend   string
	image     string // of containers
	seed      uint64
	variation uint64
	again     string // the command that runs it again; "": made from the flags
	duration  time.Duration
	clients   int
	set       []string
	out       string
	json      bool
	junit     string
	expect    bool
	dryRun    bool
}

func newRun(s streams) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run --scenario NAME|FILE",
		Short: "run one scenario and judge it",
		Long: `Starts real servers and clients, lets the scenario's faults loose on them, judges the
recorded history and writes a report. Everything it starts ends with it.

The result is printed on standard output, progress on standard error. The seed fixes the
workload and the plan of faults; on real servers it cannot fix the timing of the kernel.

` + exitHelp,
		Example: `  chaos run --scenario failover
  chaos run --scenario gc-pause --seed 7 --clients 8
  chaos run --scenario ./mine.yaml --set workload.lease=2s --json
  chaos run --scenario failover --lock 'exec:python3 examples/client.py'
  chaos run --scenario failover --backend docker --docker-image redis:7.2
  chaos run --scenario failover --expect --junit result.xml      (for CI)`,
		Args: exactly(0, "no arguments: name the scenario with --scenario"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := notZero(c); err != nil {
				return err
			}
			if !c.Flags().Changed("seed") {
				o.seed = uint64(rand.Uint32())
			}
			return runScenario(c, s, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.scenario, "scenario", "", "name (see chaos list scenarios), or a YAML file")
	f.StringVar(&o.lock, "lock", "", "another lock than the scenario's; exec:COMMAND is a client of your own")
	f.StringVar(&o.backend, "backend", "auto", "what to run on: "+strings.Join(backendNames(), ", "))
	f.StringVar(&o.image, "docker-image", docker.Image(), "image with redis-server, for backend docker ($"+
		docker.ImageVariable+"; see make docker-image)")
	f.Uint64Var(&o.seed, "seed", 0, "seed of workload and plan (default: drawn, and printed)")
	f.Uint64Var(&o.variation, "variation", 0, "the seed's plan with other timing, as chaos explore tries it (backend sim)")
	f.DurationVar(&o.duration, "duration", 0, "how long clients start new operations (default: the scenario's)")
	f.IntVar(&o.clients, "clients", 0, "number of clients (default: the scenario's)")
	f.StringArrayVar(&o.set, "set", nil, "change the scenario, as path=value; may be repeated")
	f.StringVar(&o.out, "out", rundir.Root, "folder for run directories")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON object")
	f.StringVar(&o.junit, "junit", "", "write the result as JUnit XML to this file")
	f.BoolVar(&o.expect, "expect", false, "exit 0 if the run ends as the scenario expects, else 1")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the scenario and the plan of faults, start nothing")
	_ = c.RegisterFlagCompletionFunc("scenario", completeNames(scenarios.Names))
	_ = c.RegisterFlagCompletionFunc("lock", completeNames(lockNames))
	_ = c.RegisterFlagCompletionFunc("backend", completeNames(backendNames))
	return c
}

func runScenario(c *cobra.Command, s streams, o runOptions) error {
	ctx, stop := interruptible(c.Context(), s)
	defer stop()
	if o.scenario == "" {
		return usage(fmt.Errorf("name a scenario: --scenario %s", strings.Join(scenarios.Names(), "|")))
	}
	scenario, err := scenarios.LoadWith(o.scenario, o.overrides())
	if err != nil {
		return usage(err)
	}
	if o.dryRun {
		return dryRun(s, scenario, o)
	}
	out, err := perform(ctx, s, o, scenario)
	if out == nil || out.Dir == nil {
		return err
	}
	return errors.Join(err, publish(s, out, o, err))
}

// notZero refuses zeros that would be taken for a flag that is not there.
func notZero(c *cobra.Command) error {
	for _, name := range []string{"duration", "clients"} {
		if f := c.Flags().Lookup(name); f.Changed && (f.Value.String() == "0" || f.Value.String() == "0s") {
			return usage(fmt.Errorf("--%s 0 makes no run: leave it out for the scenario's own", name))
		}
	}
	return nil
}

// perform makes the run and shows how it goes.
func perform(ctx context.Context, s streams, o runOptions, scenario scenarios.Scenario) (*runner.Outcome, error) {
	spec, why, err := chooseBackend(o.backend, scenario)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program on disk: %w", err)
	}
	options := runner.BackendOptions{Client: []string{self, "client"}, Image: o.image, Stalled: endStalled}
	backend := spec.New(options)
	if backend.Facts().Deterministic {
		// Elsewhere auto may choose another, and the run would not be the same; and with one processor, as a
		// worker of chaos explore has it, Go has fewer orders for the goroutines of one client.
		o.backend = spec.Name
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	show := newProgress(s, scenario, o.seed)
	show.begin(spec.Name, why)
	out, err := runner.Run(ctx, runner.Options{
		Scenario: scenario, Seed: o.seed, Variation: o.variation, Backend: backend, Why: why, Out: o.out,
		Repeat: o.repeat(spec.Flags(options)), Version: version, Search: searchCommand(), Watch: show.see,
	})
	show.end(out != nil && out.Dir != nil)
	return out, err
}

// publish writes the report, prints the result and finds the exit code.
// failed is what went wrong in the run, if anything.
func publish(s streams, out *runner.Outcome, o runOptions, failed error) error {
	run, err := reports.Load(out.Dir)
	if err != nil {
		return err
	}
	unwritten := reports.WriteAll(run) // a full disk, mostly: the result is told all the same
	if o.json {
		err = reports.Render(run, "json", s.out)
	} else {
		err = reports.Text(s.out, run, reports.TextOptions{Width: terminal(s.out), Colour: colour(s.out)})
	}
	if err := errors.Join(unwritten, err); err != nil {
		return err
	}
	if o.junit != "" {
		if err := renderFile(run, "junit", o.junit); err != nil {
			return err
		}
	}
	switch {
	case failed != nil:
		return nil // its own exit code counts
	case o.expect:
		return asExpected(s, out)
	}
	return verdictCode(out.Judgement.Verdict)
}

// asExpected is nil if the run ended as its scenario says.
func asExpected(s streams, out *runner.Outcome) error {
	wrong := checker.Unexpected(out.Judgement, out.Manifest.Expect)
	if len(wrong) == 0 {
		return nil
	}
	for _, w := range wrong {
		s.note("not as expected: %s", w)
	}
	return &codeError{code: exitUnsafe}
}

// overrides are the flags that change the scenario, --set last.
func (o runOptions) overrides() []scenarios.Override {
	var list []scenarios.Override
	add := func(flag, path, word, value string) {
		list = append(list, scenarios.Override{As: "--" + flag + " " + shellQuote(word), Path: path, Value: value})
	}
	if o.lock != "" {
		add("lock", "lock", o.lock, strconv.Quote(o.lock))
	}
	if o.duration != 0 {
		add("duration", "duration", o.duration.String(), o.duration.String())
	}
	if o.clients != 0 {
		add("clients", "workload.clients", strconv.Itoa(o.clients), strconv.Itoa(o.clients))
	}
	return append(list, scenarios.Sets(o.set)...)
}

// repeat is the command that runs the same again; flags are those of the backend.
func (o runOptions) repeat(flags []string) string {
	if o.again != "" {
		return o.again
	}
	words := fmt.Sprintf("chaos run --scenario %s --seed %d", o.words(), o.seed)
	if o.variation != 0 {
		words += fmt.Sprintf(" --variation %d", o.variation)
	}
	if o.backend != "auto" {
		words += " --backend " + o.backend
	}
	for _, flag := range flags {
		words += " " + shellQuote(flag)
	}
	return words
}

// words are the scenario and the flags that change it, as a shell reads them.
func (o runOptions) words() string {
	words := []string{shellQuote(o.scenario)}
	if o.lock != "" {
		words = append(words, "--lock", shellQuote(o.lock))
	}
	if o.duration != 0 {
		words = append(words, "--duration", o.duration.String())
	}
	if o.clients != 0 {
		words = append(words, "--clients", strconv.Itoa(o.clients))
	}
	for _, set := range o.set {
		words = append(words, "--set", shellQuote(set))
	}
	return strings.Join(words, " ")
}

// shellQuote is word as a shell reads it back.
func shellQuote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func dryRun(s streams, scenario scenarios.Scenario, o runOptions) error {
	fmt.Fprintf(s.out, "%s\nseed: %d\nplan:\n", harmless(scenario.YAML()), o.seed)
	for _, step := range scenario.Plan(o.seed).All() {
		fmt.Fprintf(s.out, "  - %s\n", step)
	}
	return nil
}

func lockNames() []string {
	var names []string
	for _, row := range client.Catalog() {
		names = append(names, row.Name)
	}
	return names
}

func completeNames(names func() []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return names(), cobra.ShellCompDirectiveNoFileComp
	}
}
