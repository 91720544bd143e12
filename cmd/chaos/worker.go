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
	"github.com/lockchaos/lockchaos/internal/explore"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/reports"
	"github.com/lockchaos/lockchaos/scenarios"
)

func newWorker(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "worker",
		Short: "run seeds in virtual time, as asked on standard input",
		Long: "Runs scenarios in virtual time, a job on each line of standard input, an answer on each of standard output. " +
			"chaos explore starts one for each processor.",
		Hidden: true,
		Args:   exactly(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			debug.SetGCPercent(workerGC)
			for range deepStacks {
				go deep(make(chan struct{}))
			}
			return explore.Serve(s.in, s.out, func(j explore.Job) explore.Answer { return simulate(c.Context(), j) })
		},
	}
}

// workerGC has a worker collect garbage less often than by itself: a run leaves
// nothing, and everything is collected between two of them.
const workerGC = 800

// deepStacks is how many goroutines of a worker wait for ever with a few
// kilobytes on their stacks. Go begins a goroutine with as much stack as the last
// collection found goroutines to use on average (runtime, gcComputeStartingStackSize).
// Between two runs there are hardly any, and each of the thousands of the next run would
// have to grow its own: a tenth to a fifth of the time of a run on five masters.
const deepStacks = 40

func deep(never <-chan struct{}) byte {
	var frame [6 << 10]byte
	frame[len(never)] = 1 // or it would not be on the stack
	<-never
	return frame[cap(never)]
}

// workerCommand is how a pool starts newWorker.
func workerCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program on disk: %w", err)
	}
	return []string{self, "worker"}, nil
}

// simulate makes one run. Its directory is kept only if the job says so.
func simulate(ctx context.Context, j explore.Job) (a explore.Answer) {
	scenario, err := scenarios.Parse([]byte(j.Scenario), nil)
	if err != nil {
		return explore.Answer{Failure: err.Error()}
	}
	backend := runner.NewSim(endStalled)
	o := runner.Options{
		Scenario: scenario, Seed: j.Seed, Variation: j.Variation, Backend: backend, Why: "explored",
		Out: j.Keep, Memory: j.Keep == "",
		Version: version, Repeat: repeatOf(j),
	}
	if j.Keep != "" {
		o.Search = searchCommand()
	}
	out, err := runner.Run(ctx, o)
	// Package-level pools of go-redis keep timers of a bubble, which must not reach the next one.
	runtime.GC()
	runtime.GC()
	if out == nil {
		return explore.Answer{Failure: fmt.Sprint(err)}
	}
	a = answerOf(out, j)
	a.Commands, a.Virtual = backend.Commands(), backend.Passed()
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

// endStalled ends the program when a lock has brought virtual time to a stop:
// its goroutines cannot be stopped in any other way.
func endStalled(advice string) {
	fmt.Fprintln(os.Stderr, "chaos: "+harmless(advice))
	os.Exit(exitInternal)
}

func writeReports(dir *rundir.Dir) error {
	run, err := reports.Load(dir)
	if err != nil {
		return err
	}
	return reports.WriteAll(run)
}

func answerOf(out *runner.Outcome, j explore.Job) explore.Answer {
	a := explore.Answer{
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
	a.Hash, a.States = hex.EncodeToString(sum[:]), explore.States(text)
	if j.Events {
		a.History = string(text)
	}
	for _, r := range out.Judgement.Results {
		if r.Property == checker.Bite {
			a.Grants, a.Faults = int(r.Counts["grants"]), int(r.Counts["faults_that_bit"])
		}
	}
	return a
}

// repeatOf is the command that makes the run of j again.
func repeatOf(j explore.Job) string {
	name := j.Name
	if name == "" {
		name = "FILE"
	}
	text := fmt.Sprintf("chaos run --scenario %s --backend sim --seed %d", name, j.Seed)
	if j.Variation != 0 {
		text += fmt.Sprintf(" --variation %d", j.Variation)
	}
	return text
}
