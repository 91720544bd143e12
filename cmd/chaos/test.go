package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/adapters"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/console"
	"github.com/lockchaos/lockchaos/internal/evaluation"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/scenarios"
)

// testDir is the default directory of a test.
const testDir = "chaos-test"

const testExit = `Exit codes: 0 no finding of the lock (beyond the baseline), 1 a finding, or two clients held the lock
at once in the check of the client, 2 too little was tested to decide, 69 servers or the client could not
be started, 130 interrupted (the findings so far are written).`

type testOptions struct {
	evaluation.Options
	lock, baseline, image string
	topologies            []string
	init                  time.Duration
	json                  bool
}

func newTest(s streams) *cobra.Command {
	var o testOptions
	c := &cobra.Command{
		Use:   "test --lock NAME|exec:COMMAND",
		Short: "Test one lock against its stated promises, and write one page",
		Long: `Checks the client of the lock, runs the scenarios of the catalog that fit its promises and topologies, and
spends the rest of the time on scenarios that are generated for it. The result has the properties that
held and how often they were tested, the bugs of this lock, the failures that no lock of its kind can
prevent, and the parts that were not tested.

Writes index.html, summary.md, junit.xml and test.json to --out, with the report of an example run of
each finding. --baseline accepts known findings: {"accept": [{"cause": "stolen", "owner": "ann",
"until": "2026-12-31"}]}.

` + testExit,
		Example: `  chaos test --lock 'exec:python3 lock.py'
  chaos test --lock redsync/mutex --topology sentinel,quorum --time 20m --out nightly
  chaos test --lock 'exec:python3 nats_client.py' --topology nats.yaml     (servers of your own)
  chaos test --lock 'exec:./lock' --baseline lockchaos.json     (CI: only new findings fail)`,
		Args: noArgs("; name the lock with --lock"),
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("seed") {
				o.Seed = uint64(rand.Uint32())
			}
			return testLock(c, s, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.lock, "lock", "", "the lock to test: a `NAME` of chaos list locks, or exec:COMMAND, your own client")
	f.StringSliceVar(&o.topologies, "topology", nil, "kinds of servers (default: all of the lock in the catalog; "+
		"for a program, "+cluster.Single+" and "+cluster.Replicated+"), or a scenario FILE with servers of your own")
	f.DurationVar(&o.Time, "time", 3*time.Minute, "start no run after this time")
	f.StringVar(&o.Out, "out", testDir, "`DIR` for the results")
	f.StringVar(&o.baseline, "baseline", "", "JSON `FILE` with findings that are accepted for now")
	f.BoolVar(&o.FailFast, "fail-fast", false, "end at the first finding of the lock")
	f.StringVar(&o.Backend, "backend", autoBackend, "where servers run: "+strings.Join(backendNames(), ", "))
	f.StringVar(&o.image, "docker-image", "", "`IMAGE` with redis-server, for backend docker")
	f.Uint64Var(&o.Seed, "seed", 0, "seed of the runs and of the first generated scenario (default: random, printed)")
	f.IntVar(&o.Jobs, "jobs", 0, "number of parallel runs (default: two per CPU)")
	f.DurationVar(&o.init, "init-timeout", 0, "how long to wait for a client's reply to init")
	f.BoolVar(&o.json, "json", false, "print test.json")
	_ = c.RegisterFlagCompletionFunc("lock", completeNames(lockNames))
	_ = c.RegisterFlagCompletionFunc("topology", completeNames(topologyNames))
	_ = c.RegisterFlagCompletionFunc("backend", completeNames(backendNames))
	return c
}

// complete checks the flags and fills o.Options.
func (o *testOptions) complete() (err error) {
	if o.lock == "" {
		return errors.New("--lock is required: a name (see chaos list locks), or exec:COMMAND")
	}
	if o.Out == "" {
		return errors.New("--out must name a directory")
	}
	if o.Time <= 0 || o.Jobs < 0 || o.init < 0 {
		return errors.New("--time must be positive; --jobs and --init-timeout must not be negative")
	}
	if o.Options.Lock, err = generator.Find(o.lock); err != nil {
		return fmt.Errorf("--lock: %w%s", err, lockHint(o.lock))
	}
	if err := known("--backend: unknown backend", o.Backend, backendNames()); err != nil {
		return err
	}
	if err := o.Options.Lock.On(o.topologies); err != nil {
		return fmt.Errorf("--topology: %w", err)
	}
	o.Jobs = cmp.Or(o.Jobs, 2*runtime.NumCPU())
	if o.baseline != "" {
		o.Baseline, err = evaluation.ReadBaseline(o.baseline)
	}
	return err
}

func testLock(c *cobra.Command, s streams, o testOptions) error {
	if err := o.complete(); err != nil {
		return usage(err)
	}
	if err := rundir.Writable(o.Out); err != nil {
		return &codeError{exitEnvironment, err}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program on disk: %w", err)
	}
	ctx, stop := interruptible(c.Context(), s)
	defer stop()
	o.Command, o.Version, o.Args = []string{self}, version, o.runArgs()
	if err := o.check(ctx, s); err != nil {
		return err
	}
	o.Missing = missingOn(o.Backend)
	if len(o.Options.Lock.Simulated().Kinds) > 0 {
		o.Explore = exploreFor(s)
	}
	o.Note = func(text string) { s.note("%s", text) }
	o.Found = func(f evaluation.Finding) { s.note("%s", f.Line()) }
	if !(evaluation.Report{Client: o.Client}).Untestable() {
		s.note("testing %s on %s for %s, seed %d", o.lock, strings.Join(o.Options.Lock.Kinds, ", "), o.Time, o.Seed)
	}
	var latest atomic.Pointer[evaluation.Progress]
	latest.Store(&evaluation.Progress{Phase: "choosing scenarios"})
	o.Watch = func(p evaluation.Progress) { latest.Store(&p) }
	began := time.Now()
	line := console.ShowStatus(s.err, func() console.Status { return testStatus(latest.Load(), began, o.Time) })
	report, err := evaluation.Run(ctx, o.Options)
	line.End()
	if err != nil && report.Runs.All == 0 {
		return err
	}
	return publishTest(s, report, o, err)
}

// runArgs are the arguments of every run.
func (o *testOptions) runArgs() (args []string) {
	args = []string{"--lock", o.lock}
	if o.image != "" {
		args = append(args, "--docker-image", o.image)
	}
	if servers := o.Options.Lock.Servers; servers != nil {
		args = append(args, "--set", "topology="+servers.Text())
	}
	switch {
	case o.init > 0:
		args = append(args, "--init-timeout", o.init.String())
	case slices.Contains(adapters.Names(), o.lock):
		args = append(args, "--set", adapters.InitTimeout)
	}
	return args
}

// check checks the client of a lock that is not of this project.
func (o *testOptions) check(ctx context.Context, s streams) error {
	if o.Options.Lock.Command == nil {
		return nil
	}
	s.note("checking the client of %s", o.lock)
	r, err := checkClient(ctx, o.lock, o.Options.Lock.Servers, o.init)
	if err != nil {
		return err
	}
	o.Client, o.Unstated, o.Options.Lock.Can, o.Options.Lock.Alone = r.Findings, r.Unstated, r.Can, r.Alone
	for _, f := range r.Findings {
		if !f.OK {
			s.note("the client does not conform to the protocol: %s: %s", f.Check, f.Detail)
		}
	}
	return nil
}

// exploreFor simulates generated scenarios, and shrinks the ones with a violation.
func exploreFor(s streams) evaluation.ExploreFunc {
	return func(ctx context.Context, o explore.Options) (evaluation.Explored, error) {
		o.Jobs = min(o.Jobs, runtime.NumCPU())
		pool, err := openPool(o.Jobs)
		if err != nil {
			return evaluation.Explored{}, err
		}
		defer pool.Close()
		limited, cancel := context.WithTimeout(ctx, o.Time)
		defer cancel()
		o.Time -= o.Time / shrinkShare
		report, err := explore.Explore(ctx, pool, o)
		if err != nil {
			return evaluation.Explored{Report: report}, err
		}
		files, err := shrinkAll(limited, s, pool, scenarios.Scenario{}, report)
		return evaluation.Explored{
			Report: report, Shrunk: format.Texts(files, func(s shrunk) string { return s.File }),
		}, err
	}
}

// shrinkShare: findings are shrunk in the last 1/shrinkShare of the time of an exploration.
const shrinkShare = 4

// testStatus is the status line of a test.
func testStatus(p *evaluation.Progress, began time.Time, total time.Duration) console.Status {
	left := max(0, total-time.Since(began)).Round(time.Second)
	return console.Status{Text: "testing", Done: int64(min(total, time.Since(began))), Total: int64(total),
		Count: int64(p.Runs.All), Noun: "run",
		More: fmt.Sprintf("%s, %s unsafe, %s left", p.Phase, format.Number(p.Runs.Unsafe), left)}
}

// publishTest writes the files of a test, prints the result and returns the exit code. failed is the error that ended
// the test.
func publishTest(s streams, r evaluation.Report, o testOptions, failed error) error {
	unwritten := errors.Join(failed, r.Write(o.Out))
	var err error
	if o.json {
		err = s.json(r)
	} else {
		err = r.Text(s.out)
		fmt.Fprintln(s.out, filepath.Join(o.Out, evaluation.PageFile))
	}
	switch code := r.ExitCode(); {
	case unwritten != nil || err != nil:
		return errors.Join(unwritten, err)
	case r.Interrupted:
		return runner.ErrInterrupted
	case code != exitSafe:
		return &codeError{code: code}
	}
	return nil
}
