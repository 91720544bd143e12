// Package explore runs one scenario with many seeds in virtual time, keeps a
// run of each kind of violation, repeats runs to see that they are the same,
// and makes a run that violates smaller. It judges nothing itself.
//
// Read [Explore] first, then [Pool]: runs happen in worker processes, because a
// lock that brings virtual time to a stop, or panics, takes its process with it.
package explore

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
)

// Job is one line to a worker: a run to make.
type Job struct {
	Scenario  string `json:"scenario"`            // YAML, as it is to be run
	Seed      uint64 `json:"seed"`                //
	Variation uint64 `json:"variation,omitempty"` // the same plan with other timing; 0: none; odd: by priorities
	Keep      string `json:"keep,omitempty"`      // folder for a whole run directory with its report; "": keep nothing
	Name      string `json:"name,omitempty"`      // the scenario and the flags that change it, as a shell reads them, for Keep
	Events    bool   `json:"events,omitempty"`    // send the history along
}

// ByPriorities says whether messages of the run arrive by priorities: see package runner's Options.Variation.
func (j Job) ByPriorities() bool { return j.Variation%2 == 1 }

// Answer is one line from a worker: how the run went.
type Answer struct {
	Seed      uint64          `json:"seed"`
	Variation uint64          `json:"variation,omitempty"`
	Verdict   checker.Verdict `json:"verdict"`
	Sentence  string          `json:"sentence"`
	Kinds     []Kind          `json:"kinds,omitempty"`  // of violation, each once
	States    []string        `json:"states,omitempty"` // interesting ones that were reached, sorted
	Hash      string          `json:"hash"`             // of the history's bytes
	Events    int             `json:"events"`           //
	Grants    int             `json:"grants"`           //
	Faults    int             `json:"faults"`           // that bit
	Virtual   time.Duration   `json:"virtual_ns"`       // time that passed in the simulation
	Commands  int64           `json:"commands"`         // that the simulated servers ran
	Failure   string          `json:"failure,omitempty"`
	Dir       string          `json:"dir,omitempty"`     // the run directory, if Job.Keep asked for one
	History   string          `json:"history,omitempty"` // JSON lines, if Job.Events asked for them
	Took      time.Duration   `json:"took_ns"`           // real time in the worker
}

// Kind is what sort of violation it is.
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

// KindsOf are the kinds of violation in a judgement, in its order, each once.
// Bite is none: a run that tested nothing violates nothing.
func KindsOf(j checker.Judgement) []Kind {
	var all []Kind
	for _, r := range j.Results {
		if r.Outcome != checker.Violated || r.Property == checker.Bite {
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

// Violates says whether the run violated k, whatever the words of its rule.
func (a Answer) Violates(k Kind) bool {
	return slices.ContainsFunc(a.Kinds, func(o Kind) bool { return o.Property == k.Property && o.Class == k.Class })
}

// Serve is a worker: it reads jobs from in, runs each, and writes the answers to
// out, until in ends.
func Serve(in io.Reader, out io.Writer, run func(Job) Answer) error {
	jobs, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var j Job
		err := jobs.Decode(&j)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a job: %w", err)
		}
		begun := time.Now()
		a := run(j)
		a.Seed, a.Variation, a.Took = j.Seed, j.Variation, time.Since(begun)
		if err := answers.Encode(a); err != nil {
			return fmt.Errorf("writing the answer to a job: %w", err)
		}
	}
}

// FirstDifference is the number (from 1) of the first line in which a and b
// differ, and both lines; 0 if they do not differ.
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
