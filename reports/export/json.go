package export

import (
	"io"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/stats"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

// Summary is the output of --json about a run.
type Summary struct {
	ID           string                 `json:"id"`
	State        rundir.State           `json:"state"`
	Scenario     string                 `json:"scenario"`
	Seed         uint64                 `json:"seed"`
	Backend      string                 `json:"backend"`
	Lock         string                 `json:"lock"`
	Clients      int                    `json:"clients"`
	Verdict      checker.Verdict        `json:"verdict"` // empty: not judged
	Met          bool                   `json:"as_expected"`
	Expectations []checker.Comparison   `json:"expectations"`
	Story        evidence.Story         `json:"story"`
	Judgement    checker.Judgement      `json:"judgement"`
	PerClient    []evidence.ClientStats `json:"clients_table"`
	Latencies    []stats.Latency        `json:"latencies"`
	LongestFree  time.Duration          `json:"longest_free_with_waiter_ns"`
	Witness      *evidence.SamplingGaps `json:"witness,omitempty"` // intervals between samples; absent if nodes were not sampled
	Faults       evidence.FaultTally    `json:"faults"`
	Missing      []string               `json:"missing,omitempty"`
	Path         string                 `json:"path,omitempty"`   // of the run directory
	Report       string                 `json:"report,omitempty"` // path of report.html; absent: it was not written
}

// JSON writes the [Summary] of a run.
func JSON(r *evidence.Run, w io.Writer) error {
	m := &r.Manifest
	s := Summary{ID: m.ID, State: m.State, Scenario: m.Scenario, Seed: m.Seed, Backend: m.Backend, Lock: m.Lock,
		Clients: r.History.Clients, Verdict: r.Judgement.Verdict, Met: evidence.AsExpected(r),
		Expectations: evidence.Expectations(r), Story: r.Story,
		Judgement: r.Judgement, PerClient: r.PerClient(), Latencies: stats.Latencies(r.History),
		LongestFree: evidence.LongestFree(r).Length(),
		Witness:     r.Sampling, Faults: r.Tally(),
		Missing: r.Missing, Path: r.Path("")}
	if r.Dir != nil && r.Dir.Has(rundir.ReportFile) {
		s.Report = r.Path(rundir.ReportFile)
	}
	return format.WriteJSON(w, s)
}
