package suite

import (
	"io"
	"time"

	"github.com/lockchaos/lockchaos/internal/openmetrics"
)

// OpenMetrics writes the numbers of a suite: runs by outcome, and of each scenario whether its runs were as expected.
func (s Suite) OpenMetrics(w io.Writer) error {
	var m openmetrics.Writer
	m.Start("lockchaos_suite", "info", "", "What was run.")
	m.Sample("_info", 1, openmetrics.Is("chaos", s.Version), openmetrics.Is("backend", s.Backend),
		openmetrics.Is("filter", s.Filter), openmetrics.Is("lock", s.Lock))
	m.Start("lockchaos_suite_runs", "gauge", "", "Runs, by outcome.")
	for _, o := range Outcomes() {
		m.Sample("", float64(s.Count(o)), openmetrics.Is("outcome", string(o)))
	}
	lines, rows := grouped(s.Rows, func(r Row) Row { return r })
	m.Start("lockchaos_suite_scenario_runs", "gauge", "", "Runs of a scenario, by outcome.")
	for _, l := range lines {
		for _, o := range Outcomes() {
			if n := (Suite{Rows: rows[l]}).Count(o); n > 0 {
				m.Sample("", float64(n), openmetrics.Is("scenario", l.scenario), openmetrics.Is("backend", l.backend),
					openmetrics.Is("outcome", string(o)))
			}
		}
	}
	m.Start("lockchaos_suite_scenario_seconds", "gauge", "seconds", "How long the runs of a scenario took.")
	for _, l := range lines {
		seconds := 0.0
		for _, r := range rows[l] {
			seconds += r.Seconds
		}
		m.Sample("", seconds, openmetrics.Is("scenario", l.scenario), openmetrics.Is("backend", l.backend))
	}
	m.Seconds("lockchaos_suite_duration_seconds", "How long the suite took.", s.Finished.Sub(s.Started))
	m.Seconds("lockchaos_suite_finished_seconds", "Wall clock at the end of the suite, in Unix time.",
		time.Duration(s.Finished.UnixNano()))
	return m.End(w)
}
