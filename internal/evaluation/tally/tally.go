// Package tally chooses the scenarios that test a lock, and sums up the runs: what the lock kept, what it broke and
// why, and what was not tested. Two findings with one cause are one. It runs nothing and writes nothing.
//
// Read [Plan] and [Tally] first.
package tally

import (
	"maps"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Result is the result of all runs with one lock.
type Result struct {
	Runs       Runs        `json:"runs"`
	Findings   []Finding   `json:"findings,omitempty"`   // those of the lock first, the most frequent first
	Kept       []Kept      `json:"kept,omitempty"`       // properties without a finding of the lock
	Conditions string      `json:"conditions,omitempty"` // the faults that had an effect and their numbers
	NotTested  []NotTested `json:"not_tested,omitempty"`
}

// Tally is a [Result] in progress. One goroutine at a time may use it.
type Tally struct {
	Result                      // complete after SumUp
	Accept func(Finding) string // by whom and until when a finding is accepted; "": it is not. nil: none is
	Found  func(Finding)        // is called with each new finding. nil: it is not

	seen     map[checker.Property]*sum
	broken   map[checker.Property]bool // in a run with a finding of the lock itself, by its cause
	of       map[string]int            // runs by scenario, without those of an exploration
	faults   map[string]int64          // that had an effect, by name
	explored int                       // runs of explorations
	missed   map[string][]string       // scenarios that did not run, by reason
	idle     []idle                    // runs that decided nothing
}

// idle are the runs that decided nothing in one way.
type idle struct {
	how       string // inconclusive or failed
	runs      int
	scenarios []string
	why       string // of the first one
}

// New is a tally without runs; unfit are the scenarios that do not fit the lock, see [Plan].
func New(unfit map[string][]string) *Tally {
	missed := map[string][]string{}
	maps.Copy(missed, unfit)
	return &Tally{seen: map[checker.Property]*sum{}, broken: map[checker.Property]bool{}, of: map[string]int{},
		faults: map[string]int64{}, missed: missed}
}

// Missed adds a scenario that did not run.
func (t *Tally) Missed(scenario, why string) { t.missed[why] = append(t.missed[why], scenario) }

// Failed counts a run that ended without a verdict.
func (t *Tally) Failed(scenario, why string) {
	t.Runs.All++
	t.Runs.Failed++
	t.undecided("failed", scenario, why)
}

// undecided notes why a run decided nothing.
func (t *Tally) undecided(how, scenario, why string) {
	i := slices.IndexFunc(t.idle, func(x idle) bool { return x.how == how })
	if i < 0 {
		why, _, _ = strings.Cut(why, "; ") // one of several reasons
		i, t.idle = len(t.idle), append(t.idle, idle{how: how, why: why})
	}
	x := &t.idle[i]
	if x.runs++; !slices.Contains(x.scenarios, scenario) {
		x.scenarios = append(x.scenarios, scenario)
	}
}

// AddRuns counts runs of an exploration with so many grants.
func (t *Tally) AddRuns(r Runs, grants int64) {
	sum := &t.Runs
	sum.All, sum.Generated, sum.Safe = sum.All+r.All, sum.Generated+r.Generated, sum.Safe+r.Safe
	t.explored += r.All
	sum.Unsafe, sum.Inconclusive, sum.Failed = sum.Unsafe+r.Unsafe, sum.Inconclusive+r.Inconclusive, sum.Failed+r.Failed
	t.sum(checker.Exercised).add(r.All, map[string]int64{"grants": grants})
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
	Runs     int              `json:"runs"`               // that show it
	Of       int              `json:"of"`                 // all runs of the test
	Seen     []Seen           `json:"seen"`               // where it shows, the scenario of the run that is kept first
	Scenario string           `json:"scenario"`           // of the run that is kept
	Seed     uint64           `json:"seed"`               // of that run
	Run      string           `json:"run,omitempty"`      // directory of that run, relative to test.json
	File     string           `json:"file,omitempty"`     // its scenario, if it was generated, relative to test.json
	Repeat   string           `json:"repeat"`             // the command that repeats that run
	Accepted string           `json:"accepted,omitempty"` // by the baseline: owner and end
	Steps    []evidence.Step  `json:"steps,omitempty"`    // from cause to effect, of that run

	weight   int            // of its scenario
	explored int            // of the runs, those of an exploration, which has a finding for each rule that they violated
	in       map[runID]bool // the other runs
	all      bool           // it explains all violations of its run
}

// Seen is how often a finding shows in the runs of one scenario.
type Seen struct {
	Scenario string `json:"scenario"` // or [Generated]: all generated ones that ran once
	Runs     int    `json:"runs"`     // that show it
	Of       int    `json:"of"`
}

// Generated stands for the generated scenarios that ran once each.
const Generated = "generated scenarios"

// runID is one of the runs of a test.
type runID struct {
	scenario string
	seed     uint64
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
	Subject string `json:"subject"`
	Why     string `json:"why"`
	Needs   string `json:"needs,omitempty"`
}

// fewest is the number of runs with a verdict below which a test has shown nothing.
const fewest = 3

// Own are the findings of the lock itself that the baseline does not accept.
func (r Result) Own() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return !f.Own || f.Accepted != "" })
}

// Common are the findings that any lock of this kind has.
func (r Result) Common() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Own })
}

// Accepted are the findings of the lock that the baseline accepts.
func (r Result) Accepted() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return !f.Own || f.Accepted == "" })
}

// TooLittle reports whether the runs decide nothing.
func (r Result) TooLittle() bool {
	decided := r.Runs.Safe + r.Runs.Unsafe
	return decided < fewest || decided < r.Runs.Inconclusive+r.Runs.Failed
}
