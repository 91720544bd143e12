// Package explore runs one scenario with many seeds in virtual time. It keeps a run of each kind of violation, repeats
// runs to verify that they are deterministic, and shrinks a run that violates a property.
//
// Read [Explore] first, then [Pool]: runs happen in worker processes, because a lock that stops virtual time, or
// panics, takes its process with it.
package explore

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Job is a run to make: one line to a worker.
type Job struct {
	Scenario  string              `json:"scenario"` // YAML
	Seed      uint64              `json:"seed"`
	Variation scenarios.Variation `json:"variation,omitempty"`
	Keep      string              `json:"keep,omitempty"`    // where to create the run directory; "": keep nothing
	Name      string              `json:"name,omitempty"`    // with Keep: the scenario and the flags that change it, shell-quoted
	History   bool                `json:"history,omitempty"` // return the history

	number int // of the seed in its shard, from 1; 0: a variation, or a repetition
}

// Result is how a run went: one line from a worker.
type Result struct {
	Seed      uint64              `json:"seed"`
	Variation scenarios.Variation `json:"variation,omitempty"`
	Verdict   checker.Verdict     `json:"verdict"`
	Sentence  string              `json:"sentence"`
	Kinds     []Kind              `json:"kinds,omitempty"`  // of violation, each once
	States    []string            `json:"states,omitempty"` // see [States.Reached]
	Hash      string              `json:"hash"`             // of the history's bytes
	Events    int                 `json:"events"`
	Grants    int                 `json:"grants"`
	Faults    int                 `json:"faults"`     // that took effect
	Virtual   time.Duration       `json:"virtual_ns"` // duration of the run in virtual time
	Commands  int64               `json:"commands"`   // executed by the simulated servers
	Failure   string              `json:"failure,omitempty"`
	Dir       string              `json:"dir,omitempty"`     // with Job.Keep
	History   string              `json:"history,omitempty"` // JSON lines, with Job.History
	Took      time.Duration       `json:"took_ns"`           // real time in the worker
	CPU       time.Duration       `json:"cpu_ns"`            // processor time of the worker
}

// Kind is a kind of violation.
type Kind struct {
	Property checker.Property `json:"property"`
	Class    checker.Class    `json:"class,omitempty"`
	Rule     string           `json:"rule"`
}

func (k Kind) String() string {
	if k.Class == "" {
		return string(k.Property)
	}
	return fmt.Sprintf("%s (%s)", k.Property, k.Class)
}

// KindsOf are the kinds of violation in a judgement, in its order, each once. Exercised is not one of them: a run that
// tested nothing violates nothing.
func KindsOf(j checker.Judgement) []Kind {
	var all []Kind
	for _, r := range j.Results {
		if r.Outcome != checker.Violated || r.Property == checker.Exercised {
			continue
		}
		for _, v := range r.Violations {
			if k := (Kind{r.Property, v.Class, v.Rule}); !slices.Contains(all, k) {
				all = append(all, k)
			}
		}
	}
	return all
}

// violates reports whether the run violated k, by any rule.
func (r Result) violates(k Kind) bool {
	return slices.ContainsFunc(r.Kinds, func(o Kind) bool { return o.Property == k.Property && o.Class == k.Class })
}

// Serve is a worker: it makes the run of every job that it reads from in and writes the result to out, until in ends.
func Serve(in io.Reader, out io.Writer, run func(Job) Result) error {
	jobs, results := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var j Job
		err := jobs.Decode(&j)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a job: %w", err)
		}
		start, used := time.Now(), processorTime()
		r := run(j)
		r.Seed, r.Variation, r.Took, r.CPU = j.Seed, j.Variation, time.Since(start), processorTime()-used
		if err := results.Encode(r); err != nil {
			return fmt.Errorf("writing the result of a job: %w", err)
		}
	}
}

// processorTime is the processor time of this process so far.
func processorTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// FirstDifference is the number, from 1, of the first line in which a and b differ, and both lines; 0 if they are
// equal.
func FirstDifference(a, b string) (n int, inA, inB string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(x), len(y)) {
		inA, inB = "(nothing)", "(nothing)"
		if i < len(x) {
			inA = x[i]
		}
		if i < len(y) {
			inB = y[i]
		}
		if inA != inB {
			return i + 1, inA, inB
		}
	}
	return 0, "", ""
}
