// Package rundir is the directory of one run: where its files are, how they
// are written so that a kill loses nothing, and how they are read again.
//
// Read [Manifest] (run.json) and [Dir] first. It knows nothing of how a run is
// made (package runner) nor of how it is shown (package reports).
package rundir

import (
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/scenarios"
)

// Names of the files in a run directory.
const (
	ManifestFile = "run.json"
	HistoryFile  = "history.jsonl"
	WitnessFile  = "witness.jsonl"
	VerdictFile  = "verdict.json"
	ReportFile   = "report.html"
	LinearFile   = "linearization.html"
	LogsDir      = "logs"
)

// State of a run, as its manifest tells.
type State string

// The states. A run that was killed stays Running for ever.
const (
	Running     State = "running"
	Complete    State = "complete"
	Interrupted State = "interrupted" // by the user; what was recorded is judged
	Broken      State = "broken"      // the harness or the environment failed; see Manifest.Failure
)

// Manifest is run.json: what was run, on what, and how it ended.
type Manifest struct {
	Format   int    `json:"format"` // version of this layout, 1
	ID       string `json:"id"`     // scenario/UTC time-seed
	State    State  `json:"state"`
	Failure  string `json:"failure,omitempty"` // why State is Broken
	Scenario string `json:"scenario"`          // name
	Summary  string `json:"summary"`           // one sentence, from the scenario
	Source   string `json:"source,omitempty"`  // where the claim comes from
	YAML     string `json:"yaml"`              // the scenario as it was run, after all overrides
	Seed     uint64 `json:"seed"`
	// Delivery says in what order simulated messages arrived, if not by their latencies alone.
	Delivery  string              `json:"delivery,omitempty"`
	Variation scenarios.Variation `json:"variation,omitempty"`
	Repeat    string              `json:"repeat"` // the command that runs it again
	Backend   string              `json:"backend"`
	// Deterministic says that the same seed makes the same history on this backend.
	Deterministic bool          `json:"deterministic,omitempty"`
	Why           string        `json:"why"` // why this backend
	Lock          string        `json:"lock"`
	Workload      string        `json:"workload"`
	Clients       int           `json:"clients"`
	Keys          []string      `json:"keys"`
	Lease         time.Duration `json:"lease_ns"` // asked by the workload; 0: the lock renews by itself

	Topology cluster.Topology  `json:"topology"`
	Nodes    []cluster.Node    `json:"nodes"`
	Expect   map[string]string `json:"expect,omitempty"` // property → outcome, and "verdict"
	Plan     []scenarios.Step  `json:"plan,omitempty"`   // faults as data
	Phases   []Phase           `json:"phases"`           // in order
	Started  time.Time         `json:"started"`          // wall clock; the history's time 0 is Phases' "run"
	Finished time.Time         `json:"finished"`         //
	Versions map[string]string `json:"versions"`         // chaos, go, redis, os, kernel
	Machine  map[string]string `json:"machine"`          // cpus, memory
}

// Phase is a part of the run. Start and End count from the start of the command.
type Phase struct {
	Name  string        `json:"name"` // start, run, heal, judge, report
	Start time.Duration `json:"start_ns"`
	End   time.Duration `json:"end_ns"`
}

// MayBeDown is how many servers may be away at the same time without excusing
// the lock: of a quorum all but the smallest majority, else none.
func (m Manifest) MayBeDown() int {
	if m.Topology.Kind != cluster.Quorum {
		return 0
	}
	return (m.Topology.Masters - 1) / 2
}

// Downgrade is what may be said of a run that was judged as j. A run that did not
// come to its end has tested less than its scenario says: what was found in it
// counts, but that nothing was found does not make it safe.
func (m Manifest) Downgrade(j checker.Judgement) checker.Judgement {
	why := map[State]string{
		Running:     "The run was killed, or goes on still. ",
		Interrupted: "The run was interrupted before its end. ",
		Broken:      "The run failed before its end. ",
	}[m.State]
	if why != "" && j.Verdict == checker.Safe {
		j.Verdict, j.Sentence = checker.Inconclusive, why+j.Sentence
	}
	return j
}
