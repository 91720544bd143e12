package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/internal/backend/simulated"
	"github.com/lockchaos/lockchaos/internal/console"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/scenarios"
)

// suiteDir is the default directory of a suite.
const suiteDir = "chaos-suite"

const suiteExit = `Exit codes: 0 every run is as its scenario expects, 1 a run differs, 2 runs remained inconclusive or
did not run (budget, missing shard), 69 a run could not start (servers, ports), 70 a run ended with an
internal error or did not end, 130 interrupted (the results so far are written). Skipped runs and those
in quarantine do not count.`

type suiteOptions struct {
	suite.Options
	filter, shard, retry, quarantine, image string
	json                                    bool
}

func newSuite(s streams) *cobra.Command {
	var o suiteOptions
	c := &cobra.Command{
		Use:   "suite [NAME|FILE…]",
		Short: "Run many scenarios and compare every verdict with the expected one",
		Long: `Runs the scenarios of the catalog, or those named, each in a process of its own. Writes suite.json,
junit.xml, summary.md, annotations.txt and index.html to --out, and keeps the directories of runs that
are not as expected. A filter is a list of conditions, separated by commas, that must all be met:
a pattern of names, or FIELD=PATTERN|PATTERN… with the fields fault, lock, name, topology, verdict
and workload; ! negates. With --lock, generated-SEED is a scenario generated for the lock from a seed, as
for chaos run.

` + suiteExit,
		Example: `  chaos suite --backend sim
  chaos suite --filter 'redlock*,!redlock-jitter' --repeat 3
  chaos suite --filter 'topology=sentinel,verdict=safe' --retry inconclusive=2 --budget 45m
  chaos suite --lock 'exec:python3 client.py' --filter 'topology=single,workload=mutex'
  chaos suite --lock fair generated-1 generated-2 --backend sim
  chaos suite --libraries --filter 'lock=redis-py/*' --jobs 1
  chaos suite --shard 2/4 --out shard-2        (then: chaos suite merge shard-1 shard-2 shard-3 shard-4)`,
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("seed") {
				o.Seed = uint64(rand.Uint32())
			}
			return runSuite(c, s, o, args)
		},
	}
	f := c.Flags()
	f.StringVar(&o.filter, "filter", "", "run only the scenarios that meet the conditions in `EXPR`")
	f.StringVar(&o.Backend, "backend", autoBackend, "where servers run: "+strings.Join(backendNames(), ", "))
	f.StringVar(&o.Lock, "lock", "", "test the lock `NAME` instead of each scenario's; exec:COMMAND is your own client")
	f.BoolVar(&o.Libraries, "libraries", false,
		"test the locks of the adapters that are built, against adapters/*/expect.tsv, on real servers")
	f.StringVar(&o.image, "docker-image", "", "`IMAGE` with redis-server, for backend docker")
	f.Uint64Var(&o.Seed, "seed", 0,
		"seed of the first run of each scenario; each further run adds 1 (default: random, printed)")
	f.IntVar(&o.Repeat, "repeat", 1, "runs of each scenario")
	f.IntVar(&o.Jobs, "jobs", 0, "number of parallel runs (default: one per CPU; on real servers prefer 1)")
	f.StringVar(&o.shard, "shard", "", "run only part `INDEX/COUNT` of the runs, such as 2/4")
	f.DurationVar(&o.Budget, "budget", 0, "start no run after this time (default: no limit)")
	f.StringVar(&o.retry, "retry", "", "`inconclusive=N`: repeat an inconclusive run up to N times with other seeds")
	f.StringVar(&o.quarantine, "quarantine", "", "YAML `FILE` with scenarios that do not affect the exit code for now")
	f.StringVar(&o.Out, "out", suiteDir, "`DIR` for the results")
	f.BoolVar(&o.json, "json", false, "print suite.json")
	_ = c.RegisterFlagCompletionFunc("backend", completeNames(backendNames))
	_ = c.RegisterFlagCompletionFunc("lock", completeNames(lockNames))
	c.AddCommand(newSuiteMerge(s))
	return c
}

func newSuiteMerge(s streams) *cobra.Command {
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "merge DIR…",
		Short: "Join the shards of a suite",
		Long: `Joins the results of the shards in the directories and copies the runs that they kept. A
shard that is given twice counts once. A missing shard is named, and the exit code is then 2.`,
		Example: `  chaos suite merge shard-1 shard-2 --out chaos-suite`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(errors.New("suite merge needs at least one directory of a suite"))
			}
			all, err := suite.Merge(args, out)
			if err != nil {
				return unusable(err)
			}
			return publishSuite(s, all, out, asJSON, nil)
		},
	}
	c.Flags().StringVar(&out, "out", suiteDir, "`DIR` for the results")
	c.Flags().BoolVar(&asJSON, "json", false, "print suite.json")
	return c
}

// complete checks the flags and fills o.Options from them.
func (o *suiteOptions) complete(args []string) error {
	filter, err := suite.ParseFilter(o.filter)
	if err != nil {
		return fmt.Errorf("--filter %q: %w", o.filter, err)
	}
	if o.Options.Shard, err = suite.ParseShard(o.shard); err != nil {
		return err
	}
	if o.retry != "" {
		n, ok := strings.CutPrefix(o.retry, "inconclusive=")
		if o.Retry, err = strconv.Atoi(n); !ok || err != nil || o.Retry < 0 {
			return fmt.Errorf("--retry %q: expected inconclusive=N; only inconclusive runs are repeated", o.retry)
		}
	}
	if o.Repeat < 1 || o.Jobs < 0 || o.Budget < 0 {
		return errors.New("--repeat must be positive; --jobs and --budget must not be negative")
	}
	if err := known("--backend: unknown backend", o.Backend, backendNames()); err != nil {
		return err
	}
	if err := o.choose(args, filter); err != nil {
		return err
	}
	if o.quarantine == "" {
		return nil
	}
	known := scenarios.Names()
	for _, x := range o.Scenarios {
		known = append(known, x.Title())
	}
	o.Quarantine, err = suite.ReadQuarantine(o.quarantine, known)
	return err
}

// choose fills o.Scenarios.
func (o *suiteOptions) choose(args []string, filter suite.Filter) error {
	if o.Libraries {
		if o.Lock != "" || len(args) > 0 {
			return errors.New("--libraries takes its scenarios and locks from the adapters: choose with --filter")
		}
		return o.loadLibraries(filter)
	}
	names := args
	if len(names) == 0 {
		names = scenarios.Names()
	}
	if o.Lock != "" {
		if _, err := adapters.Lookup(o.Lock); err != nil {
			return fmt.Errorf("--lock: %w%s", err, lockHint(o.Lock))
		}
	}
	return o.load(names, filter)
}

// load loads the scenarios that the filter chooses.
func (o *suiteOptions) load(names []string, filter suite.Filter) error {
	changes := runOptions{lock: o.Lock}.overrides()
	for _, name := range names {
		own := changes // a generated scenario has no other lock
		if _, generated := generator.SeedOf(name); !generated {
			own = nil
		}
		scenario, err := loadScenario(name, own)
		if err != nil {
			return err
		}
		x := suite.Scenario{Arg: name, Scenario: scenario}
		if !filter.Matches(x) {
			continue
		}
		if with, err := loadScenario(name, changes); err != nil {
			x.Lock, x.Unfit = o.Lock, err.Error()
		} else {
			x.Scenario = with
		}
		o.Scenarios = append(o.Scenarios, x)
	}
	return o.chosen()
}

// chosen returns an error unless the filter has chosen a scenario.
func (o *suiteOptions) chosen() error {
	if len(o.Scenarios) == 0 {
		return fmt.Errorf("--filter %q: no scenario meets all conditions", o.filter)
	}
	return nil
}

func runSuite(c *cobra.Command, s streams, o suiteOptions, args []string) error {
	if err := o.complete(args); err != nil {
		return usage(err)
	}
	if err := rundir.Writable(o.Out); err != nil {
		return &codeError{exitEnvironment, err}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program on disk: %w", err)
	}
	o.Command, o.Version, o.Filter = []string{self}, version, o.filter
	if o.image != "" {
		o.Args = []string{"--docker-image", o.image}
	}
	if o.Lock != "" {
		o.Args = append(o.Args, "--lock", o.Lock)
	}
	o.Missing = missingOn(o.Backend)
	var latest atomic.Pointer[suite.Progress]
	latest.Store(new(suite.Progress))
	o.Watch = func(p suite.Progress) { latest.Store(&p) }
	o.Note = func(text string) { s.note("%s", text) }
	ctx, stop := interruptible(c.Context(), s)
	defer stop()
	s.note("%s, seed %d, backend %s, shard %s", format.Count(len(o.Scenarios), "scenario"), o.Seed, o.Backend,
		o.Options.Shard)
	line := console.ShowStatus(s.err, func() console.Status { return suiteStatus(latest.Load()) })
	all, err := suite.Run(ctx, o.Options)
	line.End()
	if note := simulatedInCI(all); note != "" {
		all.Notes = append(all.Notes, note)
		s.note("%s", note)
	}
	return publishSuite(s, all, o.Out, o.json, err)
}

// missingOn is the reason why a scenario cannot run on a backend; "": it can.
func missingOn(backend string) func(suite.Scenario) string {
	return func(x suite.Scenario) string {
		if x.Unfit != "" {
			return x.Unfit
		}
		if _, _, err := chooseBackend(backend, x.Scenario); err != nil {
			return err.Error()
		}
		return ""
	}
}

// simulatedInCI warns that runs of a pipeline, which means to test real servers, were simulated; "": none were.
func simulatedInCI(all suite.Suite) string {
	n := 0
	for _, r := range all.Rows {
		if r.Backend == simulated.Name {
			n++
		}
	}
	if n == 0 || all.Backend != autoBackend || !console.InCI() {
		return ""
	}
	return fmt.Sprintf("warning: in CI, %d of %s used simulated servers instead of real ones (see chaos doctor)", n,
		format.Count(len(all.Rows), "run"))
}

// suiteStatus is the status line of a suite.
func suiteStatus(p *suite.Progress) console.Status {
	return console.Status{Text: "suite", Done: int64(len(p.Suite.Rows)), Total: int64(p.Total), More: p.Sentence()}
}

// publishSuite writes the files of a suite, prints the result and returns the exit code. The result is printed also if
// the files cannot be written.
func publishSuite(s streams, all suite.Suite, out string, asJSON bool, failed error) error {
	if failed != nil && !errors.Is(failed, suite.ErrInterrupted) {
		return failed
	}
	unwritten := all.Write(out)
	if os.Getenv("GITHUB_ACTIONS") == "true" {
		if err := all.Annotations(s.err); err != nil {
			return err
		}
	}
	if asJSON {
		if err := all.JSON(s.out); err != nil {
			return err
		}
	} else {
		printSuite(s, all, out)
	}
	switch code := all.ExitCode(); {
	case unwritten != nil:
		return unwritten
	case failed != nil:
		return runner.ErrInterrupted
	case code != exitSafe:
		return &codeError{code: code}
	}
	return nil
}

func printSuite(s streams, all suite.Suite, out string) {
	for _, r := range all.Notable() {
		if r.Outcome == suite.NotRun { // the last line has their number
			continue
		}
		fmt.Fprintf(s.out, "%s  %s, seed %d: expected %s, got %s\n  %s\n", strings.ToUpper(string(r.Outcome)),
			format.Printable(r.Scenario), r.Seed, r.Expected, r.Actual(), format.Printable(strings.Join(r.Why, "\n  ")))
		if r.Quarantine != "" {
			fmt.Fprintf(s.out, "  quarantine: %s\n", format.Printable(r.Quarantine))
		}
		if r.Repeat != "" {
			fmt.Fprintf(s.out, "  %s\n", format.Printable(r.Repeat))
		}
	}
	for _, note := range all.Notes {
		fmt.Fprintln(s.out, format.Printable(note))
	}
	took := all.Finished.Sub(all.Started).Round(time.Millisecond)
	fmt.Fprintf(s.out, "%s, in %s\n%s\n", all.Sentence(), format.Duration(took), filepath.Join(out, suite.PageFile))
}
