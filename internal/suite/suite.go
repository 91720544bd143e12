// Package suite runs many scenarios, each in a process of its own, and compares every verdict with the expected one. It
// writes output for CI services: rows, JUnit XML, a job summary, annotations and a page. [Merge] joins the shards of a
// suite.
//
// Read [Row] first, then [Run]. The package judges nothing: a process of `chaos run` does, and leaves a run directory.
package suite

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
)

// Format is the version of suite.json and of its rows.
const Format = 2

// Suite is suite.json.
type Suite struct {
	Format  int    `json:"format"`
	Version string `json:"chaos"`   // of this program
	Backend string `json:"backend"` // as requested; each row names the backend of its run
	Filter  string `json:"filter,omitempty"`
	Lock    string `json:"lock,omitempty"` // replaces the lock of each scenario

	Libraries bool `json:"libraries,omitempty"` // the rows are of the locks of other libraries

	Seed     uint64    `json:"seed"`   // of the first repetition
	Repeat   int       `json:"repeat"` // runs of each scenario
	Shards   []Shard   `json:"shards"`
	Missing  []Shard   `json:"missing,omitempty"` // of a merged suite: shards without all their rows
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	Notes    []string  `json:"notes,omitempty"` // for people: an expired quarantine, a missing shard
	Rows     []Row     `json:"rows"`            // sorted by scenario and number
}

// Row is one scenario with one seed.
type Row struct {
	Format      int             `json:"format"`
	Scenario    string          `json:"scenario"`
	Number      int             `json:"number"` // of the repetition, from 1
	Lock        string          `json:"lock"`
	LockVersion string          `json:"lock_version,omitempty"`
	Backend     string          `json:"backend,omitempty"` // that was used
	Seed        uint64          `json:"seed"`              // of the last attempt
	Expected    string          `json:"expected"`          // verdict and class
	Verdict     checker.Verdict `json:"verdict,omitempty"` // empty: none
	Class       checker.Class   `json:"class,omitempty"`
	Outcome     Outcome         `json:"outcome"`
	Why         []string        `json:"why,omitempty"` // for any outcome but AsExpected
	Exercised   bool            `json:"exercised"`     // the run tested its subject (property exercised)
	Seconds     float64         `json:"seconds"`       // of all attempts
	Attempts    []Attempt       `json:"attempts,omitempty"`
	Quarantine  string          `json:"quarantine,omitempty"` // owner and end: the row does not decide the exit code
	Partial     Shard           `json:"partial,omitzero"`     // of a merged suite: the shard, if that did not end
	Begun       time.Time       `json:"begun,omitzero"`       // of a partial row: start of its suite
	Run         string          `json:"run,omitempty"`        // run directory, relative to suite.json; empty: not kept
	Repeat      string          `json:"repeat,omitempty"`     // the command that repeats the last attempt
}

// Attempt is a run before the last one, which was inconclusive.
type Attempt struct {
	Seed uint64   `json:"seed"`
	Why  []string `json:"why"`
}

// Outcome is the comparison of a row with the expectation of its scenario.
type Outcome string

// The outcomes, the most important first.
const (
	Differs      Outcome = "differs"      // a verdict or a property is another one
	Broken       Outcome = "broken"       // an internal error, or no end: no verdict
	Unable       Outcome = "unable"       // the environment failed: no verdict
	Inconclusive Outcome = "inconclusive" // every difference is something that was not decided
	NotRun       Outcome = "not-run"      // the budget was used up, or the suite was interrupted
	Skipped      Outcome = "skipped"      // the backend cannot run it, or it is not for this client
	AsExpected   Outcome = "as-expected"
)

// Outcomes are all outcomes, the most important first.
func Outcomes() []Outcome {
	return []Outcome{Differs, Broken, Unable, Inconclusive, NotRun, Skipped, AsExpected}
}

// Exit codes of a suite; see cmd/chaos.
const (
	exitDiffers      = 1
	exitInconclusive = 2
	exitThreshold    = 3 // of a run
	exitUnable       = 69
	exitBroken       = 70
)

// ExitCode is 0 if every row that counts is as expected or skipped.
func (s Suite) ExitCode() int {
	codes := map[Outcome]int{
		Differs: exitDiffers, Broken: exitBroken, Unable: exitUnable,
		Inconclusive: exitInconclusive, NotRun: exitInconclusive,
	}
	for _, o := range Outcomes() {
		if codes[o] != 0 && slices.ContainsFunc(s.Rows, func(r Row) bool { return r.Outcome == o && r.Quarantine == "" }) {
			return codes[o]
		}
	}
	if len(s.Missing) > 0 {
		return exitInconclusive
	}
	return 0
}

// Count is the number of rows with an outcome.
func (s Suite) Count(o Outcome) (n int) {
	for _, r := range s.Rows {
		if r.Outcome == o {
			n++
		}
	}
	return n
}

// Notable are the rows that are neither as expected nor skipped, the most important first.
func (s Suite) Notable() []Row {
	var rows []Row
	for _, o := range Outcomes() {
		for _, r := range s.Rows {
			if r.Outcome == o && o != AsExpected && o != Skipped {
				rows = append(rows, r)
			}
		}
	}
	return rows
}
