package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/backend/simulated"
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/locks/zookeeper"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/reports"
	"github.com/lockchaos/lockchaos/scenarios"
)

func newWorker(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "worker",
		Short: "Serve simulated runs on standard input and output",
		Long: `Runs scenarios in virtual time: reads a job per line from standard input and writes a result per line
to standard output. chaos explore starts one worker per CPU.`,
		Example: `  chaos worker < jobs.jsonl`,
		Hidden:  true,
		Args:    noArgs(""),
		RunE: func(c *cobra.Command, _ []string) error {
			debug.SetGCPercent(workerGC)
			for range deepStacks {
				go blockDeep(make(chan struct{}))
			}
			var last parsedScenario
			return explore.Serve(s.in, s.out, func(j explore.Job) explore.Result {
				if err := last.parse(j.Scenario); err != nil {
					return explore.Result{Failure: err.Error()}
				}
				return simulate(c.Context(), last.scenario, j)
			})
		},
	}
}

// workerGC is the GOGC of a worker: it collects rarely during a run, because
// simulate collects everything between two runs.
const workerGC = 800

// deepStacks is the number of goroutines of a worker that block forever with a
// few kilobytes on their stacks. Go starts a goroutine with the average stack
// size that the last collection found (runtime, gcComputeStartingStackSize).
// Between two runs there are hardly any goroutines, and each of the thousands of
// the next run would have to grow its stack, which costs 10 to 20 % of a run on
// five masters.
const deepStacks = 40

func blockDeep(never <-chan struct{}) byte {
	var frame [6 << 10]byte
	frame[len(never)] = 1 // keeps it on the stack
	<-never
	return frame[cap(never)]
}

// workerCommand is the command with which a pool starts newWorker.
func workerCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program on disk: %w", err)
	}
	return []string{self, "worker"}, nil
}

// parsedScenario is the scenario of the last job: most jobs of a worker have the same, and to parse it takes a tenth of
// a short run.
type parsedScenario struct {
	text     string
	scenario scenarios.Scenario
}

func (p *parsedScenario) parse(text string) error {
	if text == p.text {
		return nil
	}
	scenario, err := scenarios.Parse([]byte(text))
	if err != nil {
		return err
	}
	p.text, p.scenario = text, scenario
	return nil
}

// simulate makes one run of the scenario of j and keeps its directory if the job requests it.
func simulate(ctx context.Context, scenario scenarios.Scenario, j explore.Job) (a explore.Result) {
	on, states := simulated.New(backend.Options{Open: zookeeper.Opens, Stalled: endStalled}), explore.NewStates()
	o := runner.Options{
		Scenario: scenario, Seed: j.Seed, Variation: j.Variation, Backend: on, Why: "explored",
		Out: j.Keep, InMemory: j.Keep == "",
		Version: version, Repeat: j.Command(), Event: states.Add,
	}
	if j.Keep != "" {
		o.Search = searchCommand()
	}
	out, err := runner.Run(ctx, o)
	// The package-level pools of go-redis keep timers of a synctest bubble, which must not reach the next one.
	runtime.GC()
	runtime.GC()
	if out == nil {
		return explore.Result{Failure: fmt.Sprint(err)}
	}
	a = resultOf(out, j)
	a.States, a.Commands, a.Virtual = states.Reached(), on.Commands(), on.Virtual()
	if err != nil {
		a.Failure = err.Error()
	}
	if j.Keep != "" {
		a.Dir = out.Dir.Path
		if err := writeReports(out.Dir); err != nil {
			a.Failure = err.Error()
		}
	}
	return a
}

// endStalled ends the program when a lock blocks virtual time: nothing else can
// stop the lock's goroutines.
func endStalled(advice string) {
	fmt.Fprintln(os.Stderr, "chaos: this lock cannot be simulated in this scenario: "+format.Printable(advice))
	os.Exit(exitEnvironment)
}

func writeReports(dir *rundir.Dir) error {
	run, err := reports.Load(dir)
	if err != nil {
		return err
	}
	return reports.WriteAll(run)
}

func resultOf(out *runner.Outcome, j explore.Job) explore.Result {
	a := explore.Result{
		Verdict: out.Judgement.Verdict, Sentence: out.Judgement.Sentence, Kinds: explore.KindsOf(out.Judgement),
		Events: out.Judgement.Events,
	}
	text := out.History
	if out.Dir != nil {
		var err error
		if text, err = os.ReadFile(out.Dir.File(rundir.HistoryFile)); err != nil {
			a.Failure = err.Error()
			return a
		}
	}
	sum := sha256.Sum256(text)
	a.Hash = hex.EncodeToString(sum[:])
	if j.History {
		a.History = string(text)
	}
	for _, r := range out.Judgement.Results {
		if r.Property == checker.Exercised {
			a.Grants, a.Faults = int(r.Counts["grants"]), int(r.Counts["faults_with_effect"])
		}
	}
	return a
}
