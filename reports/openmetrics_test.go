package reports

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/history"
)

// TestOpenMetrics: the reference parser of the Python client of Prometheus accepts the metrics, where it is installed;
// the most likely errors are checked anyway.
func TestOpenMetrics(t *testing.T) {
	for _, s := range append(allRuns(), twoKeyRun(), failoverRun(hostile)) {
		s.m.Scenario += "\\\"\n"
		out := render(t, s.load(t), "openmetrics")
		for _, problem := range metricsProblems(out) {
			t.Errorf("%s: %s", s.m.Scenario, problem)
		}
		parse := exec.Command("python3", "-c", `import sys
from prometheus_client.openmetrics import parser
print(len(list(parser.text_string_to_metric_families(sys.stdin.read()))))`)
		parse.Stdin = strings.NewReader(out)
		if text, err := parse.CombinedOutput(); err != nil && !strings.Contains(string(text), "No module named") &&
			!strings.Contains(err.Error(), "not found") {
			t.Errorf("%s: %s", s.m.Scenario, text)
		}
	}
	out := render(t, failoverRun("orders").load(t), "openmetrics")
	for _, want := range []string{`lockchaos_verdict{lockchaos_verdict="unsafe"} 1`,
		`lockchaos_property{property="exclusion",lockchaos_property="violated"} 1`,
		`lockchaos_violations{property="exclusion"} 1`, `lockchaos_operations_total{operation="acquire",outcome="ok"} 4`,
		`lockchaos_operations_total{operation="acquire",outcome="info"} 1`,
		`lockchaos_operation_latency_seconds_count{operation="acquire"} 4`, `lockchaos_grants_total{client="client 3"} 1`,
		`lockchaos_faults{state="effective"} 2`} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("no sample %s", want)
		}
	}
}

// TestMetricsCountEveryOperation: each kind of operation is counted.
func TestMetricsCountEveryOperation(t *testing.T) {
	ops := []string{history.Acquire, history.Try, history.Release, history.Renew, history.Work, history.Arm,
		history.CountDown, history.Await, history.Delete, history.Resize, history.AddPermits, history.DropPermits,
		history.ForceRelease, history.Guard, history.Inspect, history.InspectOwner, history.CountWaiters}
	s := failoverRun("orders")
	for i, op := range ops {
		p := history.Process(100 + i)
		s.add(7000, history.Invoke, p, op, &history.Value{Owner: "o"})
		s.add(7001, history.Fail, p, op, nil)
	}
	s.number()
	out := render(t, s.load(t), "openmetrics")
	for _, op := range ops {
		want := fmt.Sprintf(`lockchaos_operations_total{operation="%s",outcome="fail"} 1`, op)
		if !strings.Contains(out, want+"\n") {
			t.Errorf("no sample %s", want)
		}
	}
	if strings.Contains(out, `operation="operation"`) {
		t.Error("an operation without a name")
	}
}

// metricsProblems are breaches of the text format of OpenMetrics 1.0: a line of another form, a family that is not in
// one piece, a sample without its suffix, a sample twice, no end.
func metricsProblems(text string) (problems []string) {
	meta := regexp.MustCompile(`^# (TYPE|UNIT|HELP) ([a-z_]+) (.+)$`)
	sample := regexp.MustCompile(`^([a-z_]+)(\{[a-z_]+="(?:[^"\\]|\\[\\n"])*"(?:,[a-z_]+="(?:[^"\\]|\\[\\n"])*")*\})? ` +
		`(-?[0-9.e+-]+)$`)
	suffixes := map[string]string{"counter": "_total", "info": "_info", "gauge": "", "stateset": "",
		"summary": "|_count|_sum"}
	body, found := strings.CutSuffix(text, "\n# EOF\n")
	if !found {
		return []string{"no # EOF at the end"}
	}
	family, kind := "", ""
	seen := map[string]bool{}
	for _, line := range strings.Split(body, "\n") {
		if m := meta.FindStringSubmatch(line); m != nil {
			switch {
			case m[1] == "TYPE" && seen[m[2]]:
				problems = append(problems, "twice: "+line)
			case m[1] == "TYPE":
				family, kind, seen[m[2]] = m[2], m[3], true
			case m[2] != family || m[1] == "UNIT" && !strings.HasSuffix(family, "_"+m[3]):
				problems = append(problems, "not of "+family+": "+line)
			}
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil || seen[m[1]+m[2]+" sample"] {
			problems = append(problems, "no sample, or twice: "+line)
			continue
		}
		seen[m[1]+m[2]+" sample"] = true
		suffix, ok := strings.CutPrefix(m[1], family)
		fits := false
		for _, s := range strings.Split(suffixes[kind], "|") {
			fits = fits || s == suffix
		}
		if !ok || !fits {
			problems = append(problems, "not of the "+kind+" "+family+": "+line)
		}
	}
	return problems
}

// TestMetricsProblems: each breach is found.
func TestMetricsProblems(t *testing.T) {
	for text, want := range map[string]string{
		"# TYPE a gauge\na{b=\"c\\\"\\n\"} 1\n# EOF\n":            "",
		"# TYPE a gauge\na 1\n":                                   "EOF",
		"# TYPE a counter\na 1\n# EOF\n":                          "counter",
		"# TYPE a gauge\nb 1\n# EOF\n":                            "gauge",
		"# TYPE a gauge\na 1\na 1\n# EOF\n":                       "twice",
		"# TYPE a gauge\n# TYPE b gauge\n# TYPE a gauge\n# EOF\n": "twice",
		"# TYPE a gauge\n# UNIT a seconds\n# EOF\n":               "not of",
		"# TYPE a gauge\na{b=\"\n\"} 1\n# EOF\n":                  "no sample",
	} {
		got := strings.Join(metricsProblems(text), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
