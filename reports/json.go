package reports

import (
	"encoding/json"
	"io"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/stats"
)

// Summary is what --json prints about a run.
type Summary struct {
	ID           string               `json:"id"`
	State        rundir.State         `json:"state"`
	Scenario     string               `json:"scenario"`
	Seed         uint64               `json:"seed"`
	Backend      string               `json:"backend"`
	Lock         string               `json:"lock"`
	Clients      int                  `json:"clients"`
	Verdict      checker.Verdict      `json:"verdict"` // empty: not judged
	Met          bool                 `json:"as_expected"`
	Expectations []checker.Comparison `json:"expectations"`
	Story        story                `json:"story"`
	Judgement    checker.Judgement    `json:"judgement"`
	PerClient    []clientStats        `json:"clients_table"`
	Latencies    []stats.Latency      `json:"latencies"`
	LongestFree  time.Duration        `json:"longest_free_with_waiter_ns"`
	Witness      *samplingGaps        `json:"witness,omitempty"` // intervals between samples; absent if nodes were not sampled
	Faults       faultTally           `json:"faults"`
	Missing      []string             `json:"missing,omitempty"`
	Path         string               `json:"path,omitempty"`   // of the run directory
	Report       string               `json:"report,omitempty"` // path of report.html
}

func writeJSON(r *Run, w io.Writer) error {
	m := &r.Manifest
	s := Summary{ID: m.ID, State: m.State, Scenario: m.Scenario, Seed: m.Seed, Backend: m.Backend, Lock: m.Lock,
		Clients: r.History.Clients, Verdict: r.Judgement.Verdict, Met: asExpected(r),
		Expectations: expectations(r), Story: r.story,
		Judgement: r.Judgement, PerClient: r.perClient(), Latencies: stats.Latencies(r.History),
		LongestFree: longestFree(r).length(),
		Witness:     r.sampling, Faults: r.tally(),
		Missing: r.Missing, Path: r.path(""), Report: r.path(rundir.ReportFile)}
	e := json.NewEncoder(format.JSON(w))
	e.SetIndent("", "  ")
	return e.Encode(s)
}
