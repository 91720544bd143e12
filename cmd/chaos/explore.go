package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/backend/simulated"
	"github.com/lockchaos/lockchaos/internal/console"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/format"
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
		Use:   "explore --scenario NAME|FILE --seeds N",
		Short: "Run many seeds of a scenario in virtual time",
		Long: `Runs a scenario with many seeds on simulated servers, in virtual time and with the real lock code,
and keeps the first run of each kind of violation as a run directory. When a fault plan reaches a
new state (for example, a replica is promoted while the lock is held), it is run again with different
timing. With one seed in three, messages are delivered by priority: a connection of low priority
delivers only while the others are idle.

` + exploreExit,
		Example: `  chaos explore --scenario failover --seeds 1000
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
	scenario, err := loadSimulated(o.scenario, o.overrides())
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
		NoVariations: o.steady,
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
	if err != nil {
		return err
	}
	result := explored{Scenario: scenario.Name, First: o.first, Report: report, args: o.scenarioArgs()}
	if o.shrink {
		if result.Shrunk, err = shrinkAll(ctx, s, pool, scenario, report); err != nil {
			return err
		}
	}
	if result.Corpus, err = corpusState(options); err != nil {
		return err
	}
	if err := result.print(s, o.json); err != nil {
		return err
	}
	return result.exit(scenario, o.expect)
}

// exploreStatus is the status line of an exploration.
func exploreStatus(r *explore.Report, seeds int) console.Status {
	return console.Status{
		Text: "exploring", Done: int64(r.Runs), Total: int64(seeds), Count: int64(r.Runs), Noun: "run",
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
	First    uint64 `json:"first_seed"`
	explore.Report
	Shrunk []shrunk `json:"shrunk,omitempty"`
	Corpus *corpus  `json:"corpus,omitempty"`

	args string // the scenario and the flags that change it, quoted for a shell
}

func (r explored) print(s streams, asJSON bool) error {
	if asJSON {
		return s.json(r)
	}
	fmt.Fprintf(s.out, "%s\n", speed(r.Report))
	fmt.Fprintf(s.out, "unsafe %s · safe %s · inconclusive %s · failed %s\n", share(r.Unsafe, r.Runs),
		share(r.Safe, r.Runs), share(r.Inconclusive, r.Runs), share(r.Failed, r.Runs))
	if r.Varied+r.Priorities > 0 {
		fmt.Fprintf(s.out, "%s repeated a plan with different timing, %s delivered messages by priority\n",
			format.Count(r.Varied, "run"), format.Count(r.Priorities, "run"))
	}
	if r.Repeated > 0 {
		fmt.Fprintf(s.out, "%s repeated with the same history, byte by byte\n", format.Count(r.Repeated, "run"))
	}
	if r.Stopped != "" {
		fmt.Fprintf(s.out, "stopped before the last seed: %s\n", r.Stopped)
	}
	r.findings(s)
	for _, sh := range r.Shrunk {
		fmt.Fprintf(s.out, "\n%s", sh.text())
	}
	if len(r.States) > 0 {
		fmt.Fprintln(s.out, "\nstates reached, with the number of runs:")
	}
	for _, state := range slices.Sorted(maps.Keys(r.States)) {
		fmt.Fprintf(s.out, "  %7s  %s\n", format.Number(r.States[state]), state)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(s.out, "\nseed %d failed: %s\n", f.Seed, format.Line(f.Failure))
	}
	for _, d := range r.Differences {
		fmt.Fprintf(s.out, "\nseed %d: the history differs when the run is repeated; line %d first and then:\n  %s\n  %s\n",
			d.Seed, d.Line, format.Line(d.Before), format.Line(d.After))
	}
	if r.Corpus != nil {
		fmt.Fprintf(s.out, "\n%s\n", r.Corpus)
	}
	return nil
}

// findings prints each kind of violation and the first run that showed it.
func (r explored) findings(s streams) {
	if len(r.Findings) > 0 {
		fmt.Fprintf(s.out, "%s of violation:\n", format.Count(len(r.Findings), "kind"))
	}
	for i, f := range r.Findings {
		fmt.Fprintf(s.out, "\n%s: %s, first with seed %d after %s\n  rule: %s\n", f.Kind, format.Count(f.Runs, "run"), f.Seed,
			format.Duration(f.At), f.Kind.Rule)
		if i > 0 && f.Seed == r.Findings[i-1].Seed && f.Variation == r.Findings[i-1].Variation {
			fmt.Fprintf(s.out, "  the same run as above\n")
			continue
		}
		fmt.Fprintf(s.out, "  %s\n", format.Line(f.Sentence))
		if f.Dir != "" {
			fmt.Fprintf(s.out, "  kept in %s\n", format.Line(f.Dir))
		}
		if reason, _, _ := strings.Cut(f.NotKept, "\n"); reason != "" {
			what := "not kept"
			if f.Dir != "" {
				what = "incomplete"
			}
			fmt.Fprintf(s.out, "  %s: %s\n", what, format.Line(reason))
		}
		fmt.Fprintf(s.out, "  %s\n", repeatOf(explore.Job{Name: r.args, Seed: f.Seed, Variation: f.Variation}))
	}
}

// speed is how much was run and how long it took.
func speed(r explore.Report) string {
	took := max(r.Took, time.Millisecond)
	return fmt.Sprintf("%s in %s: %.1f seeds/s, %.2f virtual hours (%s times real time), %s commands/s",
		format.Count(r.Runs, "run"), format.Duration(took), float64(r.Runs)/took.Seconds(), r.Virtual.Hours(),
		format.Number(int(float64(r.Virtual)/float64(took))), format.Number(int(float64(r.Commands)/took.Seconds())))
}

func share(n, of int) string {
	if of == 0 || n == 0 {
		return format.Number(n)
	}
	return fmt.Sprintf("%s (%.1f %%)", format.Number(n), 100*float64(n)/float64(of))
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
		got, err := explore.Shrink(ctx, pool, scenario, job, f.Kind)
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
