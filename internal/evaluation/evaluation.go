// Package evaluation tests one lock: it runs the scenarios that fit the lock's promises, and writes one page with the
// properties that held, the findings, and the untested parts (package tally chooses and sums up). It judges nothing:
// each run is a process of `chaos run` (package suite), and is judged there.
//
// Read [Report] first, then [Run].
package evaluation

import (
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/internal/clientcheck"
	"github.com/lockchaos/lockchaos/internal/evaluation/tally"
	"github.com/lockchaos/lockchaos/internal/generator"
	"github.com/lockchaos/lockchaos/promise"
)

// Lock is the lock under test, with the promises that its client states and the topologies to test it on.
type Lock = generator.Lock

// Finding is one cause of violations.
type Finding = tally.Finding

// Format is the version of test.json.
const Format = 2

// Report is test.json: the result of all runs with one lock.
type Report struct {
	Format      int                   `json:"format"`
	Version     string                `json:"chaos"` // of this program
	Lock        string                `json:"lock"`
	LockVersion string                `json:"lock_version,omitempty"`
	Promises    promise.Set           `json:"promises"`
	Unstated    promise.Set           `json:"unstated,omitempty"` // the lock shows them, and does not state them
	Topologies  []string              `json:"topologies"`
	Seed        uint64                `json:"seed"`
	Started     time.Time             `json:"started"`
	Finished    time.Time             `json:"finished"`
	Interrupted bool                  `json:"interrupted,omitempty"`
	Client      []clientcheck.Finding `json:"client,omitempty"` // the checks of the protocol; empty for a lock of this project
	tally.Result
	Notes []string `json:"notes,omitempty"` // for people: an expired entry of the baseline
}

// Exit codes of a test; see cmd/chaos.
const (
	exitFinding   = 1
	exitTooLittle = 2
	exitUnable    = 69
)

// WrongClient are the checks of the protocol that the client failed.
func (r Report) WrongClient() []clientcheck.Finding {
	return slices.DeleteFunc(slices.Clone(r.Client), func(f clientcheck.Finding) bool { return f.OK })
}

// Untestable reports whether the client failed a check without which the lock cannot be tested.
func (r Report) Untestable() bool {
	return slices.ContainsFunc(r.Client, func(f clientcheck.Finding) bool { return f.Last })
}

// TooLittle reports whether too few runs have a verdict, or the test was interrupted.
func (r Report) TooLittle() bool { return r.Interrupted || r.Result.TooLittle() }

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
