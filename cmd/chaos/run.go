package main

import (
	"bytes"
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

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/cluster/docker"
	"github.com/lockchaos/lockchaos/internal/console"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/internal/locks"
	"github.com/lockchaos/lockchaos/internal/locks/zookeeper"
	"github.com/lockchaos/lockchaos/internal/nearest"
	"github.com/lockchaos/lockchaos/internal/otlp"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/reports"
	"github.com/lockchaos/lockchaos/reports/export"
	"github.com/lockchaos/lockchaos/scenarios"
)

type runOptions struct {
	scenario  string
	lock      string
	backend   string
	image     string // of containers
	seed      uint64
	variation scenarios.Variation
	command   string // that repeats the run; "": made from the flags
	duration  time.Duration
	clients   int
	init      time.Duration // timeout
	set       []string
	out       string
	json      bool
	junit     string
	otlp      string // URL of a collector; "": spans are not sent
	expect    bool
	dryRun    bool
	target    targetFlags
}

// scenarioHint follows the error about an argument of run or explore.
const scenarioHint = "; name the scenario with --scenario"

func newRun(s streams) *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run --scenario NAME|FILE",
		Short: "Run a scenario and judge it",
		Long: `Starts servers and clients, injects the scenario's faults, judges the recorded history and writes
a report. Everything that it starts is stopped before it exits.

The result goes to standard output, progress to standard error. The seed determines the workload
and the fault plan, and with backend sim everything; on real servers it cannot determine timing.

` + exitHelp,
		Example: `  chaos run --scenario failover
  chaos run --scenario gc-pause --seed 7 --clients 8
  chaos run --scenario ./mine.yaml --set workload.lease=2s --json
  chaos run --scenario failover --lock 'exec:python3 examples/client.py'
  chaos run --scenario failover --backend docker --docker-image redis:7.2
  chaos run --scenario contention --target rediss://chaos@staging.example:6380     (servers of your own)
  chaos run --scenario failover --expect --junit result.xml      (for CI)`,
		Args: noArgs(scenarioHint),
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("seed") {
				o.seed = uint64(rand.Uint32())
			}
			url, err := otlp.URL(o.otlp)
			if err != nil {
				err = usage(fmt.Errorf("--otlp: %w", err))
			}
			if err = errors.Join(positive(c), err); err != nil {
				return errors.Join(err, o.notStarted(o.lock, err))
			}
			o.otlp = url
			return runScenario(c, s, o)
		},
	}
	o.scenarioFlags(c)
	f := c.Flags()
	f.StringVar(&o.backend, "backend", autoBackend, "where servers run: "+strings.Join(backendNames(), ", "))
	f.StringVar(&o.image, "docker-image", docker.Image(), "`IMAGE` with redis-server, for backend docker ($"+
		docker.ImageVariable+"; see make docker-image)")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the workload and the fault plan (default: random, printed)")
	f.Uint64Var((*uint64)(&o.variation), "variation", 0, "timing variation of the plan, from chaos explore (backend sim)")
	f.StringVar(&o.junit, "junit", "", "also write the result to `FILE` as JUnit XML")
	f.StringVar(&o.otlp, "otlp", "", "also send spans of operations, holds and faults to the OpenTelemetry collector at "+
		"`URL` (headers: $"+otlp.Headers+")")
	f.BoolVar(&o.expect, "expect", false, "exit 0 if the outcome is the one that the scenario expects, else 1")
	f.DurationVar(&o.init, "init-timeout", 0, "how long to wait for a client's reply to init (default: the scenario's, "+
		"or "+scenarios.InitTimeout.String()+")")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the scenario and the fault plan; start nothing")
	o.target.add(c)
	f.StringSliceVar(&o.target.allow, "allow", nil, "what a run may do to the target beyond its own clients and gates: "+
		allowFailover)
	_ = c.RegisterFlagCompletionFunc("backend", completeNames(backendNames))
	_ = c.RegisterFlagCompletionFunc("allow", completeNames(func() []string { return []string{allowFailover} }))
	return c
}

// scenarioFlags adds the flags that run and explore share.
func (o *runOptions) scenarioFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.scenario, "scenario", "", "`NAME` of a scenario (see chaos list scenarios), or a YAML file")
	f.StringVar(&o.lock, "lock", "", "test the lock `NAME` instead of the scenario's; exec:COMMAND is your own client")
	f.DurationVar(&o.duration, "duration", 0, "how long clients start new operations (default: the scenario's)")
	f.IntVar(&o.clients, "clients", 0, "number of clients (default: the scenario's)")
	f.StringArrayVar(&o.set, "set", nil, "override a key of the scenario, as `PATH=VALUE`; may be repeated")
	f.StringVar(&o.out, "out", rundir.Root, "`DIR` for run directories")
	f.BoolVar(&o.json, "json", false, "print the result as a JSON object")
	_ = c.RegisterFlagCompletionFunc("scenario", completeNames(scenarios.Names))
	_ = c.RegisterFlagCompletionFunc("lock", completeNames(lockNames))
}

func runScenario(c *cobra.Command, s streams, o runOptions) error {
	scenario, err := loadScenario(o.scenario, o.overrides())
	if err != nil {
		return errors.Join(err, o.notStarted(o.lock, err))
	}
	if scenario, err = o.target.on(scenario, o.backend); err != nil {
		return errors.Join(err, o.notStarted(scenario.LockText(), err))
	}
	if o.dryRun {
		return dryRun(s, scenario, o)
	}
	ctx, stop := interruptible(c.Context(), s) // not before: a signal ends a command that has started nothing
	defer stop()
	out, err := perform(ctx, s, o, scenario)
	if out == nil || out.Dir == nil {
		return errors.Join(err, o.notStarted(scenario.LockText(), err))
	}
	if err == nil {
		measurePrevention(ctx, s, scenario, out)
	}
	return rundir.JoinUnwritten(errors.Join(err, publish(ctx, s, out, o, err)))
}

// notStarted writes the JUnit file of a run that could not be started, if one was asked for.
func (o runOptions) notStarted(lock string, failed error) error {
	if o.junit == "" || failed == nil {
		return nil
	}
	m := rundir.Manifest{Scenario: o.scenario, Seed: o.seed, Backend: o.backend, Lock: lock,
		Versions: map[string]string{"chaos": version}}
	var b bytes.Buffer
	if err := export.WriteJUnitError(&b, &m, failed); err != nil {
		return err
	}
	return writeFile("junit", o.junit, b.Bytes())
}

func loadScenario(name string, overrides []scenarios.Override) (scenarios.Scenario, error) {
	if name == "" {
		return scenarios.Scenario{}, usage(
			errors.New("--scenario is required: a name (see chaos list scenarios) or a YAML file"))
	}
	if seed, drawn := generator.SeedOf(name); drawn {
		return loadDrawn(seed, overrides)
	}
	scenario, err := scenarios.Load(name, overrides...)
	return scenario, usage(err)
}

// positive refuses --duration 0, --clients 0 and --init-timeout 0, which would otherwise mean the scenario's value.
func positive(c *cobra.Command) error {
	for _, name := range []string{"duration", "clients", "init-timeout"} {
		if f := c.Flags().Lookup(name); f != nil && f.Changed && (f.Value.String() == "0" || f.Value.String() == "0s") {
			return usage(fmt.Errorf("--%s must be positive; omit it to use the scenario's value", name))
		}
	}
	return nil
}

// perform makes the run and shows its progress.
func perform(ctx context.Context, s streams, o runOptions, scenario scenarios.Scenario) (*runner.Outcome, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program on disk: %w", err)
	}
	options := backend.Options{
		Client: []string{self, "client"}, Image: o.image, Open: zookeeper.Opens, Stalled: endStalled,
	}
	var on backend.Backend
	flags, why := o.target.repeat(), "servers that the run did not start, chosen with --target"
	if o.target.url != "" && !scenario.Topology.Given() {
		on, scenario, err = o.target.backend(ctx, o, options, scenario)
	} else {
		var spec backend.Spec
		if spec, why, err = chooseBackend(o.backend, scenario); err == nil {
			on, flags = spec.New(options), append(flags, spec.RepeatFlags(options)...)
		}
	}
	if err != nil {
		return nil, err
	}
	name := on.Facts().Name
	if on.Facts().Deterministic {
		// The command that repeats the run must name sim: on another machine auto may choose another backend. One
		// processor, as a worker of chaos explore has, leaves Go fewer orders for the goroutines of one client.
		o.backend = name
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	show := console.ShowRun(s.err, scenario, o.seed)
	s.note("backend %s: %s", name, why)
	out, err := runner.Run(ctx, runner.Options{
		Scenario: scenario, Seed: o.seed, Variation: o.variation, Backend: on, Why: why, Out: o.out,
		Repeat: o.repeat(flags), Version: version, Search: searchCommand(), Watch: show.Update,
	})
	show.End(out != nil && out.Dir != nil)
	return out, err
}

// publish writes the report, prints the result and returns the exit code of the
// verdict, unless the run itself failed: then that error decides.
func publish(ctx context.Context, s streams, out *runner.Outcome, o runOptions, failed error) error {
	run, err := reports.LoadAs(out.Dir, out.Manifest, out.Judgement)
	if err != nil {
		return err
	}
	if out.Dir.LinkErr != nil {
		s.note("the link %s was not updated: %v", rundir.Latest, out.Dir.LinkErr)
	}
	unwritten := reports.WriteAll(run) // the result is printed even if the disk is full
	if o.json {
		err = reports.Render(run, "json", s.out)
	} else {
		err = export.Text(s.out, run, export.TextOptions{Width: console.Width(s.out), Color: console.Color(s.out)})
	}
	if o.junit != "" { // also if the disk of the run directory is full
		err = errors.Join(err, renderFile(run, "junit", o.junit))
	}
	if err := errors.Join(unwritten, err); err != nil {
		return err
	}
	if o.otlp != "" {
		if err := otlp.Send(ctx, run, o.otlp); err != nil {
			s.note("the spans were not exported: %v", err)
		}
	}
	switch {
	case failed != nil:
		return nil
	case o.expect:
		return asExpected(s, out)
	}
	return judgementError(out.Judgement)
}

// asExpected is nil if the scenario expects the outcome.
func asExpected(s streams, out *runner.Outcome) error {
	unexpected := expect.Unexpected(out.Judgement, out.Manifest.Expect)
	if len(unexpected) == 0 {
		return nil
	}
	for _, u := range unexpected {
		s.note("unexpected outcome: %s", format.Line(u))
	}
	without := out.Judgement
	without.Thresholds = nil
	if len(expect.Unexpected(without, out.Manifest.Expect)) == 0 {
		return thresholdError(out.Judgement)
	}
	return &codeError{code: exitUnsafe}
}

// change is a flag of which a value changes the scenario.
type change struct{ flag, value, path, yaml string }

// changes are these flags, without --set.
func (o runOptions) changes() (all []change) {
	if o.lock != "" {
		all = append(all, change{"lock", o.lock, "lock", strconv.Quote(o.lock)})
	}
	if o.duration != 0 {
		all = append(all, change{"duration", o.duration.String(), "duration", o.duration.String()})
	}
	if o.clients != 0 {
		all = append(all, change{"clients", strconv.Itoa(o.clients), "workload.clients", strconv.Itoa(o.clients)})
	}
	if o.init != 0 {
		all = append(all, change{"init-timeout", o.init.String(), "init_timeout", o.init.String()})
	}
	return all
}

// overrides are the changes by these flags, --set last.
func (o runOptions) overrides() []scenarios.Override {
	var list []scenarios.Override
	for _, c := range o.changes() {
		as := "--" + c.flag + " " + format.ShellWord(c.value)
		list = append(list, scenarios.Override{As: as, Path: c.path, Value: c.yaml})
		if c.flag == "lock" {
			list = append(list, scenarios.Override{As: as, Path: "locks", Value: "[]"})
		}
	}
	return append(list, scenarios.Sets(o.set)...)
}

// repeat is the command that repeats the run; flags are the flags of the backend.
func (o runOptions) repeat(flags []string) string {
	if o.command != "" {
		return o.command
	}
	command := fmt.Sprintf("chaos run --scenario %s --seed %d", o.scenarioArgs(), o.seed)
	if o.variation != 0 {
		command += fmt.Sprintf(" --variation %d", o.variation)
	}
	if o.backend != autoBackend {
		command += " --backend " + o.backend
	}
	for _, flag := range flags {
		command += " " + format.ShellWord(flag)
	}
	return command
}

// scenarioArgs are the scenario and the flags that change it, quoted for a shell.
func (o runOptions) scenarioArgs() string {
	words := []string{format.ShellWord(o.scenario)}
	for _, c := range o.changes() {
		words = append(words, "--"+c.flag, format.ShellWord(c.value))
	}
	for _, set := range o.set {
		words = append(words, "--set", format.ShellWord(set))
	}
	return strings.Join(words, " ")
}

func dryRun(s streams, scenario scenarios.Scenario, o runOptions) error {
	fmt.Fprintf(s.out, "%s\nseed: %d\nplan:\n", format.Printable(scenario.YAML()), o.seed)
	for _, step := range scenario.Plan(o.seed).All() {
		fmt.Fprintf(s.out, "  - %s\n", format.Line(step.String()))
	}
	return nil
}

// lockHint follows the error about an unknown lock.
func lockHint(name string) string {
	return nearest.Or(name, lockNames(), " (see chaos list locks; a program of your own is exec:COMMAND)")
}

func lockNames() []string {
	names := format.Texts(locks.Catalog(), func(row client.Spec) string { return row.Name })
	return append(names, adapters.Names()...)
}
