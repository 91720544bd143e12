package suite

import (
	"strings"
	"testing"
	"time"
)

// TestOpenMetrics: runs are counted by outcome and by scenario, and labels are escaped.
func TestOpenMetrics(t *testing.T) {
	s := Suite{
		Version: "v1", Backend: "sim", Started: time.Unix(100, 0), Finished: time.Unix(160, 0),
		Rows: []Row{
			{Scenario: "fair", Backend: "sim", Outcome: AsExpected, Seconds: 1.5},
			{Scenario: "fair", Backend: "sim", Outcome: AsExpected, Seconds: 2},
			{Scenario: "fair", Backend: "sim", Outcome: Differs, Seconds: 1},
			{Scenario: `a"b`, Backend: "sim", Outcome: Skipped},
		},
	}
	var b strings.Builder
	if err := s.OpenMetrics(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# TYPE lockchaos_suite_runs gauge\n", `lockchaos_suite_runs{outcome="as-expected"} 2` + "\n",
		`lockchaos_suite_runs{outcome="broken"} 0` + "\n",
		`lockchaos_suite_scenario_runs{scenario="fair",backend="sim",outcome="differs"} 1` + "\n",
		`lockchaos_suite_scenario_runs{scenario="a\"b",backend="sim",outcome="skipped"} 1` + "\n",
		`lockchaos_suite_scenario_seconds{scenario="fair",backend="sim"} 4.5` + "\n",
		"lockchaos_suite_duration_seconds 60\n", "lockchaos_suite_finished_seconds 160\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing:\n%s", want, b.String())
		}
	}
	if !strings.HasSuffix(b.String(), "\n# EOF\n") {
		t.Error("it has no end")
	}
}
