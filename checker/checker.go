// Package checker is promised API: it judges recorded histories, regardless of who recorded them, by the properties
// that a lock has to keep.
//
// Read [Judge] first, then [Result] and [Options], which package property documents. Promised are these, the [Catalog]
// of properties, and the types that they mention. [Stream], [FindHolds] and [WriteLinearization] serve the commands and
// reports of this module, and may change at any time. Each property is judged by a package of internal.
//
// Times are of the harness's clock. Safety is judged on the shortest intervals that are certain (no false alarms),
// liveness on the longest. A checker reports questions that it cannot decide as undecided, and a run that tested too
// little is inconclusive, not safe (see [Exercised]).
package checker

import (
	"time"

	"github.com/lockchaos/lockchaos/checker/internal/bounds"
	"github.com/lockchaos/lockchaos/checker/internal/finding"
	"github.com/lockchaos/lockchaos/checker/internal/given"
	"github.com/lockchaos/lockchaos/checker/property"
	"github.com/lockchaos/lockchaos/history"
)

// Verdict is the result for a whole run.
type Verdict string

// The verdicts, by severity: safe, not run and inconclusive, unsafe.
const (
	Safe         Verdict = "safe"
	Unsafe       Verdict = "unsafe"
	Inconclusive Verdict = "inconclusive"
	NotRun       Verdict = "not run" // of a run that ended before a client began: there is no history to judge
)

// Spec describes a property and how it is checked.
type Spec struct {
	Name   property.Name
	Doc    string // one sentence: violated if …
	Source string // where the rule comes from
	check  func(v *bounds.View, o given.Options) property.Result
	rules  finding.Rules
	absent []string // each is in the summary of a result that is not applicable; empty: it always applies
}

// Rules are the names of the rules of the property.
func (s Spec) Rules() []string { return s.rules.Names() }

// Judgement is the verdict with all results that led to it. It is written to verdict.json.
type Judgement struct {
	Verdict  Verdict           `json:"verdict"`
	Sentence string            `json:"sentence"` // why, in one sentence
	Class    property.Class    `json:"class,omitempty"`
	LockKind property.LockKind `json:"lock_kind,omitempty"` // Options.LockKind
	// ReportDelay is Options.ReportDelay.
	ReportDelay time.Duration `json:"report_delay_ns,omitempty"`
	// MayBeDown is Options.MayBeDown.
	MayBeDown int               `json:"may_be_down,omitempty"`
	Results   []property.Result `json:"results"`
	Problems  []history.Problem `json:"problems,omitempty"`
	// Thresholds are the thresholds of Options, each with the measured number.
	Thresholds []Comparison `json:"thresholds,omitempty"`

	Spans   int           `json:"spans"`
	Events  int           `json:"events"`
	Samples int           `json:"samples,omitempty"` // of the servers' state; 0: rules about it were not applied
	Took    time.Duration `json:"took_ns"`
}
