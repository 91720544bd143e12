package reports

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/stats"
)

// metrics writes the text format of OpenMetrics 1.0 (openmetrics.io). Metric
// families are written one after the other, each with its samples.
type metrics struct {
	b      strings.Builder
	family string
}

// label is the name and the value of a label.
type label struct{ name, value string }

// writeOpenMetrics writes the numbers of a run for Prometheus and its relatives.
func writeOpenMetrics(r *Run, w io.Writer) error {
	var m metrics
	man := &r.Manifest
	m.start("lockchaos_run", "info", "", "What was run.")
	m.sample("_info", 1, label{"scenario", r.title()}, label{"backend", man.Backend}, label{"lock", man.Lock},
		label{"workload", man.Workload}, label{"topology", man.Topology.Kind}, label{"seed", fmt.Sprint(man.Seed)},
		label{"id", man.ID})
	m.states("lockchaos_verdict", "The verdict.", string(r.Judgement.Verdict), nil,
		string(checker.Safe), string(checker.Unsafe), string(checker.Inconclusive))
	m.properties(r)
	m.operations(r)
	m.start("lockchaos_faults", "gauge", "", "Planned faults, by what became of them.")
	t := r.tally()
	m.sample("", float64(t.Effective), label{"state", "effective"})
	m.sample("", float64(t.Injected-t.Effective), label{"state", "without_effect"})
	m.sample("", float64(t.Missed), label{"state", "never_injected"})
	m.start("lockchaos_history_events", "gauge", "", "Events in the history.")
	m.sample("", float64(r.History.Events))
	m.start("lockchaos_history_problems", "gauge", "", "Events that were repaired or ignored.")
	m.sample("", float64(len(r.History.Problems)))
	m.seconds("lockchaos_run_duration_seconds", "From the start of the run to its last event.", r.History.End)
	m.seconds("lockchaos_longest_free_seconds", "Longest time that a lock was free while a client waited for it.",
		longestFree(r).length())
	if !man.Started.IsZero() {
		m.seconds("lockchaos_run_started_seconds", "Wall clock at the start of the run, in Unix time.",
			time.Duration(man.Started.UnixNano()))
	}
	m.b.WriteString("# EOF\n")
	_, err := io.WriteString(w, m.b.String())
	return err
}

// start begins a metric family.
func (m *metrics) start(name, kind, unit, help string) {
	m.family = name
	fmt.Fprintf(&m.b, "# TYPE %s %s\n", name, kind)
	if unit != "" {
		fmt.Fprintf(&m.b, "# UNIT %s %s\n", name, unit)
	}
	fmt.Fprintf(&m.b, "# HELP %s %s\n", name, help)
}

// sample adds a sample of the family that was started last.
func (m *metrics) sample(suffix string, value float64, labels ...label) {
	m.b.WriteString(m.family + suffix)
	for i, l := range labels {
		m.b.WriteString([]string{"{", ","}[min(i, 1)] + l.name + `="` + metricsEscape(l.value) + `"`)
	}
	if len(labels) > 0 {
		m.b.WriteString("}")
	}
	m.b.WriteString(" " + strconv.FormatFloat(value, 'g', -1, 64) + "\n")
}

// metricsEscape escapes the value of a label.
func metricsEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(format.Line(s))
}

func (m *metrics) seconds(name, help string, d time.Duration) {
	m.start(name, "gauge", "seconds", help)
	m.sample("", d.Seconds())
}

// states is a state set: 1 for the state that is, 0 for the others.
func (m *metrics) states(name, help, is string, labels []label, all ...string) {
	if help != "" {
		m.start(name, "stateset", "", help)
	}
	for _, s := range all {
		value := 0.0
		if s == is {
			value = 1
		}
		m.sample("", value, append(slices.Clone(labels), label{name, s})...)
	}
}

func (m *metrics) properties(r *Run) {
	const name = "lockchaos_property"
	help := "What was found about a property."
	for _, res := range r.Judgement.Results {
		m.states(name, help, string(res.Outcome), []label{{"property", string(res.Property)}}, string(checker.Holds),
			string(checker.Violated), string(checker.Undecided), string(checker.NotApplicable))
		help = ""
	}
	m.start("lockchaos_violations", "gauge", "", "Violations of a property.")
	for _, res := range r.Judgement.Results {
		m.sample("", float64(res.Total), label{"property", string(res.Property)})
	}
}

func (m *metrics) operations(r *Run) {
	type kind struct {
		op      history.Op
		outcome history.Type
	}
	n := map[kind]int{}
	for i := range r.History.Spans {
		s := &r.History.Spans[i]
		n[kind{s.Op, s.Outcome}]++
	}
	m.start("lockchaos_operations", "counter", "", "Operations, by outcome; info is unknown.")
	for op := history.OpOther; op <= history.OpForceRelease; op++ {
		for _, outcome := range []history.Type{history.OK, history.Fail, history.Info} {
			if count := n[kind{op, outcome}]; count > 0 {
				m.sample("_total", float64(count), label{"operation", opName(op)}, label{"outcome", outcome.String()})
			}
		}
	}
	m.start("lockchaos_operation_latency_seconds", "summary", "seconds",
		"How long successful operations took; an acquire includes its wait.")
	for _, l := range stats.Latencies(r.History) {
		for _, q := range []struct {
			q string
			d time.Duration
		}{{"0.5", l.P50}, {"0.9", l.P90}, {"0.99", l.P99}, {"1.0", l.Max}} {
			m.sample("", q.d.Seconds(), label{"operation", l.Op}, label{"quantile", q.q})
		}
		m.sample("_count", float64(l.N), label{"operation", l.Op})
	}
	clients := r.perClient()
	name := func(c int) label { return label{"client", r.History.NameProcesses(clientName(c))} }
	m.start("lockchaos_grants", "counter", "", "Holds that a client was granted.")
	for _, c := range clients {
		m.sample("_total", float64(c.Grants), name(c.Client))
	}
	m.start("lockchaos_held_seconds", "counter", "seconds", "How long a client held locks.")
	for _, c := range clients {
		m.sample("_total", c.Held.Seconds(), name(c.Client))
	}
}
