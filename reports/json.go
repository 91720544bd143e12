package reports

import (
	"encoding/json"
	"io"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// Summary is what `--json` prints: one object with all that a script asks for.
type Summary struct {
	ID           string            `json:"id"`
	State        rundir.State      `json:"state"`
	Scenario     string            `json:"scenario"`
	Seed         uint64            `json:"seed"`
	Backend      string            `json:"backend"`
	Lock         string            `json:"lock"`
	Clients      int               `json:"clients"`
	Verdict      checker.Verdict   `json:"verdict"` // empty: not judged
	Met          bool              `json:"as_expected"`
	Expectations []Expectation     `json:"expectations"`
	Story        Story             `json:"story"`
	Judgement    checker.Judgement `json:"judgement"`
	PerClient    []clientRow       `json:"clients_table"`
	Latencies    []latencyRow      `json:"latencies"`
	FreeWhile    time.Duration     `json:"longest_free_while_waited_ns"`
	Witness      *gaps             `json:"witness,omitempty"` // between two looks at a node; left out if nobody watched
	Faults       faultTally        `json:"faults"`
	Missing      []string          `json:"missing,omitempty"`
	Path         string            `json:"path,omitempty"`   // of the run directory
	Report       string            `json:"report,omitempty"` // of its page
}

func writeJSON(r *Run, w io.Writer) error {
	m := &r.Manifest
	s := Summary{ID: m.ID, State: m.State, Scenario: m.Scenario, Seed: m.Seed, Backend: m.Backend, Lock: m.Lock,
		Clients: r.clients(), Verdict: r.Judgement.Verdict, Met: Met(r), Expectations: Expectations(r), Story: r.story,
		Judgement: r.Judgement, PerClient: r.perClient(), Latencies: r.latencies(), FreeWhile: longestGap(r).length(),
		Witness: r.gaps, Faults: r.tally(),
		Missing: r.Missing, Path: r.path(""), Report: r.path(rundir.ReportFile)}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

// faultTally counts faults by what became of them.
type faultTally struct {
	Injected int `json:"injected"`
	Bit      int `json:"bit"`    // of those injected
	Missed   int `json:"missed"` // planned, and never came
}

func (r *Run) tally() faultTally {
	t := faultTally{Injected: len(r.faults), Missed: len(r.missed)}
	for i := range r.faults {
		if len(r.faults[i].bites) > 0 {
			t.Bit++
		}
	}
	return t
}
