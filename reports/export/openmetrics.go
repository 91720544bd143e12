package export

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/openmetrics"
	"github.com/lockchaos/lockchaos/internal/stats"
	"github.com/lockchaos/lockchaos/reports/evidence"
)

type metrics struct{ openmetrics.Writer }

type label = openmetrics.Label

// OpenMetrics writes the numbers of a run for Prometheus and its relatives.
func OpenMetrics(r *evidence.Run, w io.Writer) error {
	var m metrics
	man := &r.Manifest
	m.Start("lockchaos_run", "info", "", "What was run.")
	m.Sample("_info", 1, openmetrics.Is("scenario", r.Title()), openmetrics.Is("backend", man.Backend),
		openmetrics.Is("lock", man.Lock),
		openmetrics.Is("workload", man.Workload), openmetrics.Is("topology", man.Topology.Kind),
		openmetrics.Is("seed", fmt.Sprint(man.Seed)),
		openmetrics.Is("id", man.ID))
	m.States("lockchaos_verdict", "The verdict.", string(r.Judgement.Verdict), nil,
		string(checker.Safe), string(checker.Unsafe), string(checker.Inconclusive), string(checker.NotRun))
	m.properties(r)
	m.operations(r)
	m.Start("lockchaos_faults", "gauge", "", "Planned faults, by what became of them.")
	t := r.Tally()
	m.Sample("", float64(t.Effective), openmetrics.Is("state", "effective"))
	m.Sample("", float64(t.Injected-t.Effective), openmetrics.Is("state", "without_effect"))
	m.Sample("", float64(t.Missed), openmetrics.Is("state", "never_injected"))
	m.Start("lockchaos_history_events", "gauge", "", "Events in the history.")
	m.Sample("", float64(r.History.Events))
	m.Start("lockchaos_history_problems", "gauge", "", "Events that were repaired or ignored.")
	m.Sample("", float64(len(r.History.Problems)))
	m.Seconds("lockchaos_run_duration_seconds", "From the start of the run to its last event.", r.History.End)
	m.Seconds("lockchaos_longest_free_seconds", "Longest time that a lock was free while a client waited for it.",
		evidence.LongestFree(r).Length())
	if !man.Started.IsZero() {
		m.Seconds("lockchaos_run_started_seconds", "Wall clock at the start of the run, in Unix time.",
			time.Duration(man.Started.UnixNano()))
	}
	return m.End(w)
}

func (m *metrics) properties(r *evidence.Run) {
	const name = "lockchaos_property"
	help := "What was found about a property."
	for _, res := range r.Judgement.Results {
		m.States(name, help, string(res.Outcome), []label{openmetrics.Is("property", string(res.Property))},
			string(checker.Holds),
			string(checker.Violated), string(checker.Undecided), string(checker.NotApplicable))
		help = ""
	}
	m.Start("lockchaos_violations", "gauge", "", "Violations of a property.")
	for _, res := range r.Judgement.Results {
		m.Sample("", float64(res.Total), openmetrics.Is("property", string(res.Property)))
	}
}

func (m *metrics) operations(r *evidence.Run) {
	type kind struct {
		op      history.Op
		outcome history.Type
	}
	n := map[kind]int{}
	for s := range evidence.Each(r.History.Spans) {
		n[kind{s.Op, s.Outcome}]++
	}
	m.Start("lockchaos_operations", "counter", "", "Operations, by outcome; info is unknown.")
	kinds := slices.SortedFunc(maps.Keys(n), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.outcome, b.outcome))
	})
	for _, k := range kinds {
		m.Sample("_total", float64(n[k]), openmetrics.Is("operation", evidence.OpName(k.op)),
			openmetrics.Is("outcome", k.outcome.String()))
	}
	m.Start("lockchaos_operation_latency_seconds", "summary", "seconds",
		"How long successful operations took; an acquire includes its wait.")
	for _, l := range stats.Latencies(r.History) {
		for _, q := range []struct {
			q string
			d time.Duration
		}{{"0.5", l.P50}, {"0.9", l.P90}, {"0.99", l.P99}, {"1.0", l.Max}} {
			m.Sample("", q.d.Seconds(), openmetrics.Is("operation", l.Op), openmetrics.Is("quantile", q.q))
		}
		m.Sample("_count", float64(l.N), openmetrics.Is("operation", l.Op))
	}
	clients := r.PerClient()
	name := func(c int) label { return openmetrics.Is("client", r.History.NameProcesses(evidence.ClientName(c))) }
	m.Start("lockchaos_grants", "counter", "", "Holds that a client was granted.")
	for _, c := range clients {
		m.Sample("_total", float64(c.Grants), name(c.Client))
	}
	m.Start("lockchaos_held_seconds", "counter", "seconds", "How long a client held locks.")
	for _, c := range clients {
		m.Sample("_total", c.Held.Seconds(), name(c.Client))
	}
}
