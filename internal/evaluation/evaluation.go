// Package evaluation tests one lock: it chooses the scenarios that fit the lock's promises, runs them, and sums up what
// the lock kept, what it broke, and what was not tested, on one page. It judges nothing: each run is a process of
// `chaos run` (package suite), and is judged there.
//
// Read [Report] first, then [Run].
package evaluation

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/clientcheck"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/promise"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Lock is the lock under test, with the promises that its client states and the topologies to test it on.
type Lock = generator.Lock

// Format is the version of test.json.
const Format = 1

// Report is test.json: the result of all runs with one lock.
type Report struct {
	Format      int                   `json:"format"`
	Version     string                `json:"chaos"` // of this program
	Lock        string                `json:"lock"`
	LockVersion string                `json:"lock_version,omitempty"`
	Promises    promise.Set           `json:"promises"`
	Topologies  []string              `json:"topologies"`
	Seed        uint64                `json:"seed"`
	Started     time.Time             `json:"started"`
	Finished    time.Time             `json:"finished"`
	Interrupted bool                  `json:"interrupted,omitempty"`
	Client      []clientcheck.Finding `json:"client,omitempty"` // the checks of the protocol; empty for a lock of this project
	Runs        Runs                  `json:"runs"`
	Findings    []Finding             `json:"findings,omitempty"`   // those of the lock first, the most frequent first
	Kept        []Kept                `json:"kept,omitempty"`       // properties without a finding of the lock
	Conditions  string                `json:"conditions,omitempty"` // the faults that had an effect and their numbers
	NotTested   []NotTested           `json:"not_tested,omitempty"`
	Notes       []string              `json:"notes,omitempty"` // for people: an expired entry of the baseline
}

// Runs are numbers of runs.
type Runs struct {
	All          int `json:"all"`
	Generated    int `json:"generated"` // of these, with a scenario that was generated for the lock
	Safe         int `json:"safe"`
	Unsafe       int `json:"unsafe"`
	Inconclusive int `json:"inconclusive"`
	Failed       int `json:"failed"` // without a verdict
}

// Finding is one cause of violations, in all runs that show it.
type Finding struct {
	// Own: a correct lock with these promises does not have it. Otherwise the scenario expects it of any lock of its kind,
	// because no lease and no asynchronous replication can prevent it.
	Own      bool             `json:"own"`
	Because  string           `json:"because,omitempty"` // not of the lock: why it need not survive the faults
	Cause    string           `json:"cause"`             // see package cause; the property if the cause is not known
	Property checker.Property `json:"property"`
	Class    checker.Class    `json:"class,omitempty"`
	Sentence string           `json:"sentence"` // about the run that is kept
	Advice   []Advice         `json:"advice,omitempty"`
	Runs     int              `json:"runs"` // that show it
	Of       int              `json:"of"`   // runs with the scenarios that show it
	// Scenarios show it, the first one is that of the run that is kept.
	Scenarios []string        `json:"scenarios"`
	Seed      uint64          `json:"seed"`
	Run       string          `json:"run,omitempty"`      // directory of that run, relative to test.json
	File      string          `json:"file,omitempty"`     // its scenario, if it was generated, relative to test.json
	Repeat    string          `json:"repeat"`             // the command that repeats that run
	Accepted  string          `json:"accepted,omitempty"` // by the baseline: owner and end
	Steps     []evidence.Step `json:"steps,omitempty"`    // from cause to effect, of that run

	weight   int // of its scenario
	explored int // of the runs, those of an exploration, which has a finding for each rule that they violated
}

// Advice is something that would have prevented a violation.
type Advice = evidence.Advice

// Kept is a property of which no run showed a violation by this lock itself.
type Kept struct {
	Property checker.Property `json:"property"`
	Runs     int              `json:"runs"`             // in which it held
	Broken   int              `json:"broken,omitempty"` // runs in which it was violated as any lock of this kind would
	Counts   map[string]int64 `json:"counts,omitempty"` // what they examined, see checker.Result
	Text     string           `json:"text"`             // how much was examined, for people
}

// NotTested is something that no run tested, and what a test of it needs.
type NotTested struct {
	What  string `json:"what"`
	Why   string `json:"why"`
	Needs string `json:"needs,omitempty"`
}

// Exit codes of a test; see cmd/chaos.
const (
	exitFinding   = 1
	exitTooLittle = 2
	exitUnable    = 69
)

// fewest is the number of runs with a verdict below which a test has shown nothing.
const fewest = 3

// Own are the findings of the lock itself that the baseline does not accept.
func (r Report) Own() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return !f.Own || f.Accepted != "" })
}

// Common are the findings that any lock of this kind has.
func (r Report) Common() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Own })
}

// Accepted are the findings of the lock that the baseline accepts.
func (r Report) Accepted() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return !f.Own || f.Accepted == "" })
}

// WrongClient are the checks of the protocol that the client failed.
func (r Report) WrongClient() []clientcheck.Finding {
	return slices.DeleteFunc(slices.Clone(r.Client), func(f clientcheck.Finding) bool { return f.OK })
}

// Untestable reports whether the client failed a check without which the lock cannot be tested.
func (r Report) Untestable() bool {
	return slices.ContainsFunc(r.Client, func(f clientcheck.Finding) bool { return f.Last })
}

// TooLittle reports whether the runs decide nothing.
func (r Report) TooLittle() bool {
	decided := r.Runs.Safe + r.Runs.Unsafe
	return r.Interrupted || decided < fewest || decided < r.Runs.Inconclusive+r.Runs.Failed
}

// ExitCode is 0 if the lock has no finding of its own beyond the baseline.
func (r Report) ExitCode() int {
	switch {
	case slices.ContainsFunc(r.Client, func(f clientcheck.Finding) bool { return f.Last && f.Check == clientcheck.Init }):
		return exitUnable
	case len(r.Own()) > 0 || r.Untestable():
		return exitFinding
	case r.TooLittle():
		return exitTooLittle
	}
	return 0
}
