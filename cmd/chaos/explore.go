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
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/backend/simulated"
	"github.com/lockchaos/lockchaos/internal/console"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/scenarios"
)

type exploreOptions struct {
	runOptions
	seeds  int
	first  uint64
	time   time.Duration
	jobs   int
	check  int
	shrink bool
	steady bool
	shard  string
	corpus string
}

func newExplore(s streams) *cobra.Command {
	var o exploreOptions
	c := &cobra.Command{
		Use:   "explore --lock NAME | --scenario NAME|FILE",
		Short: "Run many seeds of a scenario, or of scenarios generated for a lock, in virtual time",
		Long: `Runs many seeds on simulated servers, in virtual time and with the real lock code, and keeps the
first run of each kind of violation as a run directory.

Without --scenario, each seed is a scenario of its own: topology, options of the lock, traffic and
faults are generated for the lock, and only faults that a lock with its promises survives
(docs/reference/generated-scenarios.md). A correct lock is safe in all of them. Seeds whose scenario
does not fit the other flags are left out, such as one with a fault after the end of --duration; the
result counts and names them.

With --scenario, all seeds run that one. When a fault plan reaches a new state (for example, a
replica is promoted while the lock is held), it is run again with different timing. With one seed in
three, messages are delivered by priority: a connection of low priority delivers only while the
others are idle.

` + exploreExit,
		Example: `  chaos explore --lock fair --seeds 1000 --shrink
  chaos run --lock fair --scenario generated-17 --seed 17 --backend sim   (one of them)
  chaos explore --scenario failover --seeds 1000
  chaos explore --scenario redlock-two-masters-down --seeds 100000 --time 60s --jobs 2
  chaos explore --scenario gc-pause --seeds 50 --shrink
  chaos explore --scenario failover --first-seed 1 --shard 2/4 --corpus /mnt/shared/corpus
  chaos explore --scenario failover --seeds 20 --check-determinism 10   (does a seed always give the same run?)`,
		Args: noArgs(scenarioHint),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := positive(c); err != nil {
				return err
			}
			if !c.Flags().Changed("first-seed") {
				if o.shard != "" || o.corpus != "" {
					return usage(errors.New("--shard and --corpus need --first-seed: the same for all shards"))
				}
				o.first = uint64(rand.Uint32())
			}
			return exploreScenario(c, s, o)
		},
	}
	o.scenarioFlags(c)
	f := c.Flags()
	f.IntVar(&o.seeds, "seeds", 1000, "number of runs")
	f.Uint64Var(&o.first, "first-seed", 0, "seed of the first run; the others count up from it (default: random, printed)")
	f.DurationVar(&o.time, "time", 0, "start no run after this time (default: no limit)")
	f.IntVar(&o.jobs, "jobs", 0, "number of parallel runs (default: one per CPU)")
	f.IntVar(&o.check, "check-determinism", 0, "repeat each run this many times and compare the histories byte by byte")
	f.BoolVar(&o.shrink, "shrink", false, "shrink the first run of each kind of violation, as chaos shrink does")
	f.BoolVar(&o.steady, "no-variations", false, "run each seed once: no variation of timing, no delivery by priorities")
	f.StringVar(&o.shard, "shard", "", "run only part `INDEX/COUNT` of the seeds, such as 2/4")
	f.StringVar(&o.corpus, "corpus", "", "`DIR` that shards share: a shard continues where it left off, "+
		"and skips states that others have reached")
	f.BoolVar(&o.expect, "expect", false, "exit 0 if violations were found exactly when the scenario expects unsafe; "+
		"2 if every run was inconclusive")
	return c
}

const exploreExit = `Exit codes: 0 no run was unsafe, 1 a run was unsafe, 2 no run tested enough to decide,
70 a run failed or its history differed when it was repeated, 130 interrupted (the findings so
far are printed).`

func exploreScenario(c *cobra.Command, s streams, o exploreOptions) error {
	if o.seeds < 1 || o.jobs < 0 || o.check < 0 || o.time < 0 {
		return usage(errors.New("--seeds must be positive; --jobs, --check-determinism and --time must not be negative"))
	}
	scenario, draw, err := o.load()
	if err != nil {
		return err
	}
	if err := rundir.Writable(o.out); err != nil {
		return &codeError{exitEnvironment, err}
	}
	ctx, stop := interruptible(c.Context(), s)
	defer stop()
	if o.jobs == 0 {
		o.jobs = runtime.NumCPU()
	}
	pool, err := openPool(o.jobs)
	if err != nil {
		return err
	}
	defer pool.Close()
	options := explore.Options{
		Scenario: scenario.YAML(), Name: o.scenarioArgs(), Time: o.time, Jobs: o.jobs, Out: o.out, Repeat: o.check,
		NoVariations: o.steady, Draw: draw,
	}
	if err := o.part(&options); err != nil {
		return err
	}
	s.note("exploring %s: %s from %d%s, %d in parallel", scenario.Name, format.Count(options.Seeds, "seed"),
		options.First+uint64(options.Shard.Covered)*options.Step, o.shardText(), o.jobs)
	var latest atomic.Pointer[explore.Report]
	latest.Store(new(explore.Report))
	line := console.ShowStatus(s.err, func() console.Status { return exploreStatus(latest.Load(), options.Seeds) })
	options.Watch = func(r explore.Report) { latest.Store(&r) }
	report, err := explore.Explore(ctx, pool, options)
	line.End()
	if report.Runs == 0 && err != nil {
		return err
	}
	result := explored{Scenario: scenario.Name, Lock: scenario.LockText(), First: o.first, Report: report}
	if o.shrink && err == nil {
		result.Shrunk, err = shrinkAll(ctx, s, pool, scenario, report)
	}
	if err == nil {
		result.Corpus, err = corpusState(options)
	}
	if err := errors.Join(err, result.print(s, o.json)); err != nil { // an error hides no finding
		return err
	}
	return result.exit(scenario, o.expect)
}

// drawFunc draws the scenario of a seed.
type drawFunc func(seed uint64) (explore.Drawn, error)

// load returns the scenario to explore; or, if only a lock is named, the function that draws the scenario of each seed,
// and a scenario that stands for all of them.
func (o exploreOptions) load() (scenarios.Scenario, drawFunc, error) {
	switch {
	case o.scenario != "":
		s, err := loadSimulated(o.scenario, o.overrides())
		return s, nil, err
	case o.lock == "":
		return scenarios.Scenario{}, nil, usage(errors.New("--scenario or --lock is required: a scenario to explore, or a " +
			"lock to generate scenarios for"))
	}
	l, err := drawnFor(o.overrides())
	if err != nil {
		return scenarios.Scenario{}, nil, err
	}
	if l = l.Simulated(); len(l.Kinds) == 0 {
		return scenarios.Scenario{}, nil, &codeError{exitEnvironment, fmt.Errorf("lock %s cannot be simulated", o.lock)}
	}
	all, draw := o.drawn(l)
	return all, draw, nil
}

// drawn returns the function that draws the scenario of each seed for l, and a scenario that stands for all of them.
func (o runOptions) drawn(l generator.Lock) (scenarios.Scenario, drawFunc) {
	changes := format.Texts(o.overrides(), func(o scenarios.Override) string { return o.As })
	all := scenarios.Scenario{Name: "generated", Lock: l.Name, Summary: strings.Join(changes, " ")} // one corpus for each
	all.Expect.Verdict = string(checker.Safe)
	return all, func(seed uint64) (explore.Drawn, error) {
		o.scenario = generator.Name(seed)
		s, err := l.Draw(seed, o.overrides()...)
		return explore.Drawn{Scenario: s.YAML(), Name: o.scenarioArgs()}, usage(err)
	}
}

// drawnFor is the lock among the overrides, for which scenarios are drawn.
func drawnFor(overrides []scenarios.Override) (generator.Lock, error) {
	lock := ""
	for _, o := range overrides { // the last one counts
		if o.Path == "lock" {
			lock = o.Value
		}
	}
	if text, err := strconv.Unquote(lock); err == nil {
		lock = text
	}
	if lock == "" {
		return generator.Lock{}, usage(errors.New("a generated scenario is drawn for a lock: name it with --lock"))
	}
	l, err := generator.Find(lock)
	return l, usage(err)
}

// loadDrawn is the scenario that a seed draws for the lock among the overrides, with the other overrides.
func loadDrawn(seed uint64, overrides []scenarios.Override) (scenarios.Scenario, error) {
	l, err := drawnFor(overrides)
	if err != nil {
		return scenarios.Scenario{}, err
	}
	s, err := l.Draw(seed, overrides...)
	return s, usage(err)
}

// exploreStatus is the status line of an exploration.
func exploreStatus(r *explore.Report, seeds int) console.Status {
	return console.Status{
		Text: "exploring", Done: int64(r.Runs + r.Undrawn), Total: int64(seeds), Count: int64(r.Runs), Noun: "run",
		More: fmt.Sprintf("%s unsafe, %s of violation, %s failed", format.Number(r.Unsafe),
			format.Count(len(r.Findings), "kind"), format.Number(r.Failed)),
	}
}

// loadSimulated loads a scenario and makes sure that backend sim can run it.
func loadSimulated(name string, overrides []scenarios.Override) (scenarios.Scenario, error) {
	scenario, err := loadScenario(name, overrides)
	if err == nil {
		_, _, err = chooseBackend(simulated.Name, scenario)
	}
	return scenario, err
}

func openPool(n int) (*explore.Pool, error) {
	command, err := workerCommand()
	if err != nil {
		return nil, err
	}
	return explore.Open(command, n)
}

// explored is the result, as --json prints it.
type explored struct {
	Scenario string `json:"scenario"`
	Lock     string `json:"lock"`
	First    uint64 `json:"first_seed"`
	explore.Report
	Shrunk []shrunk `json:"shrunk,omitempty"`
	Corpus *corpus  `json:"corpus,omitempty"`
}

func (r explored) print(s streams, asJSON bool) error {
	if asJSON {
		return s.json(r)
	}
	r.WriteFindings(s.out)
	for _, sh := range r.Shrunk {
		fmt.Fprintf(s.out, "\n%s", sh.text())
	}
	r.WriteStates(s.out)
	if r.Corpus != nil {
		fmt.Fprintf(s.out, "\n%s\n", r.Corpus)
	}
	return nil
}

func (r explored) exit(scenario scenarios.Scenario, expect bool) error {
	switch {
	case r.Stopped == "interrupted":
		return runner.ErrInterrupted
	case r.Failed > 0 || len(r.Differences) > 0:
		return &codeError{code: exitInternal}
	case expect && r.Safe+r.Unsafe == 0 && !scenario.Expect.Is(checker.Inconclusive):
		return verdictError(checker.Inconclusive)
	case expect:
		if scenario.Expect.Is(checker.Unsafe) && (r.Unsafe > 0 || scenario.Expect.Is(checker.Safe)) ||
			!scenario.Expect.Is(checker.Unsafe) && r.Unsafe == 0 {
			return nil
		}
		return &codeError{code: exitUnsafe}
	case r.Unsafe > 0:
		return verdictError(checker.Unsafe)
	case r.Safe == 0:
		return verdictError(checker.Inconclusive)
	}
	return nil
}

// shrinkAll shrinks the first run of each kind of violation.
func shrinkAll(
	ctx context.Context, s streams, pool *explore.Pool, scenario scenarios.Scenario, r explore.Report,
) ([]shrunk, error) {
	var all []shrunk
	for _, f := range r.Findings {
		s.note("shrinking seed %d: %s", f.Seed, f.Kind)
		job := explore.Job{Seed: f.Seed, Variation: f.Variation}
		if f.Scenario != "" {
			var err error
			if scenario, err = scenarios.Parse([]byte(f.Scenario)); err != nil {
				return all, err
			}
		}
		got, err := explore.Shrink(ctx, pool.Do, scenario, job, f.Kind)
		if err != nil && ctx.Err() == nil {
			return all, err
		}
		sh := shrunk{Shrunk: got, Seed: f.Seed, Variation: f.Variation}
		if f.Dir != "" && got.YAML != "" {
			sh.File = shrunkFile(f.Dir, f.Kind)
			if err := os.WriteFile(sh.File, []byte(got.YAML), 0o644); err != nil {
				return all, fmt.Errorf("writing the shrunk scenario: %w", err)
			}
		}
		all = append(all, sh)
		if ctx.Err() != nil {
			break
		}
	}
	return all, nil
}
