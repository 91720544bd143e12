// Package tally chooses the scenarios that test a lock, and sums up the runs: properties that held, findings by cause,
// and untested parts. It runs nothing and writes nothing.
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
	Findings   []Finding   `json:"findings,omitempty"`   // of the lock first, then by frequency
	Held       []Held      `json:"held,omitempty"`       // properties without a finding of the lock
	Conditions string      `json:"conditions,omitempty"` // the faults that had an effect and their numbers
	NotTested  []NotTested `json:"not_tested,omitempty"`
}

// Tally is a [Result] in progress. One goroutine at a time may use it.
type Tally struct {
	Result                      // complete after SumUp
	Accept func(Finding) string // the owner and the end of the acceptance of a finding; "": none. nil: none is accepted
	Found  func(Finding)        // called with each new finding; nil: not called

	seen     map[checker.Property]*sum
	broken   map[checker.Property]bool // in a run with a finding of the lock itself, by its cause
	runsOf   map[string]int            // runs by scenario, without an exploration's
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
	return &Tally{seen: map[checker.Property]*sum{}, broken: map[checker.Property]bool{}, runsOf: map[string]int{},
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

// AddRuns counts the runs of an exploration and their grants.
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
	// or a lock with these promises need not survive a fault of the scenario (Because).
	Own      bool             `json:"own"`
	Because  string           `json:"because,omitempty"` // the fault that the lock need not survive, and the reason
	Cause    string           `json:"cause"`             // see package cause; the property if the cause is not known
	Property checker.Property `json:"property"`
	Class    checker.Class    `json:"class,omitempty"`
	Sentence string           `json:"sentence"`           // about the run that is kept
	Advice   []Advice         `json:"advice,omitempty"`   // changes first, then measured facts
	Runs     int              `json:"runs"`               // that show it
	Of       int              `json:"of"`                 // all runs of the test
	Seen     []Seen           `json:"seen"`               // by scenario; first the scenario of the run that is kept
	Scenario string           `json:"scenario"`           // of the run that is kept
	Seed     uint64           `json:"seed"`               // of that run
	Run      string           `json:"run,omitempty"`      // directory of that run, relative to test.json
	File     string           `json:"file,omitempty"`     // its scenario, if it was generated, relative to test.json
	Repeat   string           `json:"repeat"`             // the command that repeats that run
	Accepted string           `json:"accepted,omitempty"` // by the baseline: owner and end
	Steps    []evidence.Step  `json:"steps,omitempty"`    // from cause to effect, of that run

	weight   int            // of its scenario
	explored int            // number of runs of an exploration, which has a finding for each violated rule
	in       map[runID]bool // all other runs
	all      bool           // it explains all violations of its run
}

// Seen is the frequency of a finding in the runs of one scenario.
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

// Held is a property without a finding of the lock itself.
type Held struct {
	Property checker.Property `json:"property"`
	Runs     int              `json:"runs"`               // in which it held
	Violated int              `json:"violated,omitempty"` // runs in which it was violated as by any lock of this kind
	Counts   map[string]int64 `json:"counts,omitempty"`   // of the runs in which it held, see checker.Result
	Text     string           `json:"text"`               // these counts, for people
}

// NotTested is a part that no run tested, with the reason, and the requirement of a test of it.
type NotTested struct {
	Subject string `json:"subject"`
	Why     string `json:"why"`
	Needs   string `json:"needs,omitempty"`
}

// minDecided is the number of safe or unsafe runs that a test needs for a result.
const minDecided = 3

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

// Few reports whether too little was tested, and a few more runs may change that.
func (r Result) Few() bool { return r.TooLittle() && r.Runs.All < 2*minDecided }

// TooLittle reports whether too few runs are safe or unsafe for a result.
func (r Result) TooLittle() bool {
	decided := r.Runs.Safe + r.Runs.Unsafe
	return decided < minDecided || decided < r.Runs.Inconclusive+r.Runs.Failed
}
