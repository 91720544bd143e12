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
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/explore"
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
}

func newExplore(s streams) *cobra.Command {
	var o exploreOptions
	c := &cobra.Command{
		Use:   "explore --scenario NAME|FILE --seeds N",
		Short: "run many seeds of a scenario in virtual time",
		Long: `Runs a scenario with many seeds on simulated servers, in virtual time and with the real code of the lock,
and keeps the first run of each kind of violation as a run directory. A plan that reaches an interesting
state (a replica promoted while the lock is held, say) for the first time is run again with other timing.
In one of three seeds messages arrive by priorities: some connections are slow for as long as others are busy.

` + exploreExit,
		Example: `  chaos explore --scenario failover --seeds 1000
  chaos explore --scenario redlock-two-masters-down --seeds 100000 --time 60s --jobs 2
  chaos explore --scenario gc-pause --seeds 50 --shrink
  chaos explore --scenario failover --seeds 20 --check-determinism 10   (is the same seed the same run?)`,
		Args: exactly(0, "no arguments: name the scenario with --scenario"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := notZero(c); err != nil {
				return err
			}
			if !c.Flags().Changed("first-seed") {
				o.first = uint64(rand.Uint32())
			}
			return exploreScenario(c, s, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.scenario, "scenario", "", "name (see chaos list scenarios), or a YAML file")
	f.StringVar(&o.lock, "lock", "", "another lock than the scenario's")
	f.DurationVar(&o.duration, "duration", 0, "virtual time of a run (default: the scenario's)")
	f.IntVar(&o.clients, "clients", 0, "number of clients (default: the scenario's)")
	f.StringArrayVar(&o.set, "set", nil, "change the scenario, as path=value; may be repeated")
	f.StringVar(&o.out, "out", rundir.Root, "folder for the runs that are kept")
	f.IntVar(&o.seeds, "seeds", 1000, "how many runs")
	f.Uint64Var(&o.first, "first-seed", 0, "seed of the first run, the others follow (default: drawn, and printed)")
	f.DurationVar(&o.time, "time", 0, "begin no run after so long (default: no limit)")
	f.IntVar(&o.jobs, "jobs", 0, "runs at a time (default: one for each processor)")
	f.IntVar(&o.check, "check-determinism", 0, "make each run so often and compare the histories, byte by byte")
	f.BoolVar(&o.shrink, "shrink", false, "make the first run of each kind of violation as small as it goes")
	f.BoolVar(&o.steady, "no-variations", false, "run each seed once, with latencies alone, and nothing else")
	f.BoolVar(&o.expect, "expect", false, "exit 0 if violations were found, or none, as the scenario expects")
	f.BoolVar(&o.json, "json", false, "print the result as one JSON object")
	_ = c.RegisterFlagCompletionFunc("scenario", completeNames(scenarios.Names))
	_ = c.RegisterFlagCompletionFunc("lock", completeNames(lockNames))
	return c
}

const exploreExit = `It ends with 0 if no run was unsafe, 1 if one was, 2 if no run tested anything, 70 if a run
failed or was not the same when it was repeated, 130 when interrupted (what was found by then is told).`

func exploreScenario(c *cobra.Command, s streams, o exploreOptions) error {
	if o.seeds < 1 || o.jobs < 0 || o.check < 0 || o.time < 0 {
		return usage(errors.New("--seeds is at least 1; --jobs, --check-determinism and --time are not negative"))
	}
	scenario, err := simulated(o.scenario, o.overrides())
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
	fmt.Fprintf(s.err, "exploring %s: %d seeds from %d, %d at a time\n", scenario.Name, o.seeds, o.first, o.jobs)
	show := &exploring{s: s, live: terminal(s.err) > 0}
	report, err := explore.Explore(ctx, pool, explore.Options{
		Scenario: scenario.YAML(), Name: o.words(), First: o.first, Seeds: o.seeds, Time: o.time, Jobs: o.jobs,
		Out: o.out, Repeat: o.check, Steady: o.steady, Watch: show.see,
	})
	show.end()
	if err != nil {
		return err
	}
	result := explored{Scenario: scenario.Name, First: o.first, Report: report, words: o.words()}
	if o.shrink {
		if result.Shrunk, err = shrinkAll(ctx, s, pool, scenario, report); err != nil {
			return err
		}
	}
	if err := result.print(s, o.json); err != nil {
		return err
	}
	return result.exit(scenario, o.expect)
}

// simulated loads a scenario that is to run on sim, and says what keeps it from that.
func simulated(name string, overrides []scenarios.Override) (scenarios.Scenario, error) {
	if name == "" {
		what := "name a scenario: --scenario " + strings.Join(scenarios.Names(), "|")
		return scenarios.Scenario{}, usage(errors.New(what))
	}
	scenario, err := scenarios.LoadWith(name, overrides)
	if err != nil {
		return scenario, usage(err)
	}
	_, _, err = chooseBackend(runner.NewSim(nil).Name(), scenario)
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

	words string // the scenario and its flags, as a shell reads them
}

func (r explored) print(s streams, asJSON bool) error {
	if asJSON {
		return s.json(r)
	}
	fmt.Fprintf(s.out, "%s\n", speed(r.Report))
	fmt.Fprintf(s.out, "unsafe %s · safe %s · inconclusive %s · failed %s\n", share(r.Unsafe, r.Runs),
		share(r.Safe, r.Runs), share(r.Inconclusive, r.Runs), share(r.Failed, r.Runs))
	if r.Varied+r.Priorities > 0 {
		fmt.Fprintf(s.out, "of the runs, %d had a plan that had reached something new, %d messages by priorities\n",
			r.Varied, r.Priorities)
	}
	if r.Same > 0 {
		fmt.Fprintf(s.out, "%s made again and the same, byte by byte\n", plural(r.Same, "run"))
	}
	if r.Stopped != "" {
		fmt.Fprintf(s.out, "ended before all seeds were run: %s\n", r.Stopped)
	}
	r.findings(s)
	for _, sh := range r.Shrunk {
		fmt.Fprintf(s.out, "\n%s", sh.text())
	}
	if len(r.States) > 0 {
		fmt.Fprintln(s.out, "\nstates reached, and in how many runs:")
	}
	for _, state := range slices.Sorted(maps.Keys(r.States)) {
		fmt.Fprintf(s.out, "  %7d  %s\n", r.States[state], state)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(s.out, "\nseed %d failed: %s\n", f.Seed, harmless(f.Failure))
	}
	for _, d := range r.Unequal {
		fmt.Fprintf(s.out, "\nseed %d is not the same when it is repeated; line %d of its history:\n  %s\n  %s\n",
			d.Seed, d.Line, harmless(d.First), harmless(d.Again))
	}
	return nil
}

// findings prints each kind of violation, and the run that showed it first once.
func (r explored) findings(s streams) {
	if len(r.Findings) > 0 {
		fmt.Fprintf(s.out, "%s of violation:\n", plural(len(r.Findings), "kind"))
	}
	for i, f := range r.Findings {
		fmt.Fprintf(s.out, "\n%s: %s, first with seed %d after %.2fs\n  rule: %s\n", f.Kind, plural(f.Runs, "run"), f.Seed,
			f.At.Seconds(), f.Kind.Rule)
		if i > 0 && f.Seed == r.Findings[i-1].Seed && f.Varied == r.Findings[i-1].Varied {
			fmt.Fprintf(s.out, "  the same run as above\n")
			continue
		}
		fmt.Fprintf(s.out, "  %s\n", harmless(f.Sentence))
		if f.Dir != "" {
			fmt.Fprintf(s.out, "  kept in %s\n", f.Dir)
		}
		if first, _, _ := strings.Cut(f.NotKept, "\n"); first != "" && f.Dir == "" {
			fmt.Fprintf(s.out, "  it could not be kept: %s\n", harmless(first))
		} else if first != "" {
			fmt.Fprintf(s.out, "  but not all of it: %s\n", harmless(first))
		}
		fmt.Fprintf(s.out, "  %s\n", repeatOf(explore.Job{Name: r.words, Seed: f.Seed, Variation: f.Varied}))
	}
}

// speed says how much was run in how long.
func speed(r explore.Report) string {
	real := max(r.Took, time.Millisecond)
	return fmt.Sprintf("%s in %.1fs: %.1f seeds/s, %.2f virtual hours (%.0f times real time), %.0f commands/s",
		plural(r.Runs, "run"), real.Seconds(), float64(r.Runs)/real.Seconds(), r.Virtual.Hours(),
		float64(r.Virtual)/float64(real), float64(r.Commands)/real.Seconds())
}

func share(n, of int) string {
	if of == 0 || n == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d (%.1f %%)", n, 100*float64(n)/float64(of))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (r explored) exit(scenario scenarios.Scenario, expect bool) error {
	switch {
	case r.Stopped == "interrupted":
		return runner.ErrInterrupted
	case r.Failed > 0 || len(r.Unequal) > 0:
		return &codeError{code: exitInternal}
	case expect:
		if wanted := scenario.Expect["verdict"] == string(checker.Unsafe); wanted == (r.Unsafe > 0) {
			return nil
		}
		return &codeError{code: exitUnsafe}
	case r.Unsafe > 0:
		return verdictCode(checker.Unsafe)
	case r.Safe == 0:
		return verdictCode(checker.Inconclusive)
	}
	return nil
}

// exploring shows how far it is: a live line on a terminal, a line each ten seconds elsewhere.
type exploring struct {
	s    streams
	live bool

	mu   sync.Mutex
	said time.Time
}

func (p *exploring) see(r explore.Report) {
	every := heartbeat
	if p.live {
		every = 200 * time.Millisecond
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said.IsZero() && !p.live {
		p.said = time.Now()
	}
	if time.Since(p.said) < every {
		return
	}
	p.said = time.Now()
	line := fmt.Sprintf("%s, %d unsafe, %d kinds of violation, %d failed", speed(r), r.Unsafe, len(r.Findings), r.Failed)
	if p.live {
		fmt.Fprintf(p.s.err, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(p.s.err, line)
}

func (p *exploring) end() {
	if p.live {
		fmt.Fprint(p.s.err, "\r\x1b[K")
	}
}

// shrinkAll makes the first run of each kind smaller. A kind that comes out as
// the same scenario as another is told once.
func shrinkAll(
	ctx context.Context, s streams, pool *explore.Pool, scenario scenarios.Scenario, r explore.Report,
) ([]shrunk, error) {
	var all []shrunk
	for _, f := range r.Findings {
		fmt.Fprintf(s.err, "making seed %d smaller: %s\n", f.Seed, f.Kind)
		job := explore.Job{Seed: f.Seed, Variation: f.Varied}
		got, err := explore.Shrink(ctx, pool, scenario, job, f.Kind)
		if err != nil && ctx.Err() == nil {
			return all, err
		}
		sh := shrunk{Shrunk: got, Seed: f.Seed, Variation: f.Varied}
		if f.Dir != "" && got.YAML != "" {
			sh.File = smallFile(f.Dir, f.Kind)
			if err := os.WriteFile(sh.File, []byte(got.YAML), 0o644); err != nil {
				return all, fmt.Errorf("writing the smaller scenario: %w", err)
			}
		}
		all = append(all, sh)
		if ctx.Err() != nil {
			break
		}
	}
	return all, nil
}
