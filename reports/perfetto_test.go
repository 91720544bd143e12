package reports

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/reports/export"
)

// parsedTrace is the JSON object of the Trace Event Format.
type parsedTrace struct {
	DisplayTimeUnit string `json:"displayTimeUnit"`
	TraceEvents     []struct {
		export.TraceEvent

		Time *float64 `json:"ts"`
	} `json:"traceEvents"`
}

type track struct{ pid, tid int }

// traceProblems are the breaches of the Trace Event Format: an event without a required field, slices of one thread
// that overlap without being nested, a flow without its two ends or outside a slice.
func traceProblems(text string) (problems []string) {
	var trace parsedTrace
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&trace); err != nil {
		return []string{err.Error()}
	}
	bad := func(i int, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("event %d: ", i)+fmt.Sprintf(format, args...))
	}
	slicesOf := map[track][][2]float64{}
	named := map[track]bool{}
	flows := map[int][]string{}
	for i, e := range trace.TraceEvents {
		at := track{e.PID, e.TID}
		if e.Name == "" || e.Time == nil || *e.Time < 0 {
			bad(i, "no name or no time: %+v", e)
			continue
		}
		switch e.Phase {
		case "M":
			if e.Args["name"] == nil && e.Args["sort_index"] == nil {
				bad(i, "metadata without a value")
			}
			named[at] = named[at] || e.Name == "thread_name"
		case "X":
			if e.Dur == nil || *e.Dur < 0 {
				bad(i, "a slice without a duration")
				continue
			}
			if !named[at] {
				bad(i, "a slice of a thread without a name")
			}
			slicesOf[at] = append(slicesOf[at], [2]float64{*e.Time, *e.Time + *e.Dur})
		case "i":
			if e.Scope != "g" && e.Scope != "p" && e.Scope != "t" {
				bad(i, "scope %q", e.Scope)
			}
		case "s", "f":
			flows[e.ID] = append(flows[e.ID], e.Phase)
			inside := false
			for _, w := range slicesOf[at] {
				inside = inside || w[0] <= *e.Time && *e.Time <= w[1]
			}
			if !inside {
				bad(i, "the end of a flow in no slice")
			}
		default:
			bad(i, "phase %q", e.Phase)
		}
	}
	for at, all := range slicesOf {
		for i := 1; i < len(all); i++ {
			if all[i][0] < all[i-1][1] {
				problems = append(problems, fmt.Sprintf("slices of %v overlap: %v, %v", at, all[i-1], all[i]))
			}
		}
	}
	for id, ends := range flows {
		if strings.Join(ends, "") != "sf" {
			problems = append(problems, fmt.Sprintf("flow %d has the ends %q", id, ends))
		}
	}
	return problems
}

// TestPerfetto: the trace is valid and complete.
func TestPerfetto(t *testing.T) {
	for _, s := range append(allRuns(), twoKeyRun(), failoverRun(hostile)) {
		out := render(t, s.load(t), "perfetto")
		for _, problem := range traceProblems(out) {
			t.Errorf("%s: %s", s.m.Scenario, problem)
		}
	}
	r := failoverRun("orders").load(t)
	var trace parsedTrace
	if err := json.Unmarshal([]byte(render(t, r, "perfetto")), &trace); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, e := range trace.TraceEvents {
		name := e.Name
		if e.Phase == "M" {
			name = fmt.Sprint(e.Args["name"])
		}
		seen[e.Phase+" "+e.Cat+" "+name]++
	}
	for what, n := range map[string]int{"M  client 3": 1, "M  n1 (127.0.2.1:7001)": 1, "M  key orders": 3, "M  holds": 4,
		"X hold orders": 4, "X write write orders": 4, "s flow grant to write": 4, "f flow grant to write": 4,
		"i fault kill n1 takes effect": 1, "i fault kill n1 is healed": 1, "X fault kill n1": 1, "X violation exclusion": 1,
		"X node does not reply": 1, "X key client 3": 1} {
		if seen[what] != n {
			t.Errorf("%q: %d times, want %d", what, seen[what], n)
		}
	}
	if t.Failed() {
		t.Log(seen)
	}
}

// TestTraceProblems: each breach is found.
func TestTraceProblems(t *testing.T) {
	const thread = `{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":1,"args":{"name":"x"}},`
	const slice = `{"name":"a","ph":"X","ts":5,"dur":10,"pid":1,"tid":1}`
	for events, want := range map[string]string{
		thread + slice: "",
		`{"name":"a","ph":"X","ts":5,"dur":10,"pid":1,"tid":1}`:                             "without a name",
		thread + `{"name":"a","ph":"X","ts":5,"pid":1,"tid":1}`:                             "without a duration",
		thread + slice + `,{"name":"b","ph":"X","ts":9,"dur":10,"pid":1,"tid":1}`:           "overlap",
		thread + slice + `,{"name":"b","ph":"s","ts":9,"id":4,"pid":1,"tid":1}`:             "flow 4",
		thread + slice + `,{"name":"b","ph":"f","bp":"e","ts":19,"id":4,"pid":1,"tid":1}`:   "in no slice",
		`{"name":"a","ph":"i","ts":5,"pid":1,"tid":1}`:                                      "scope",
		`{"name":"a","ph":"Q","ts":5,"pid":1,"tid":1}`:                                      "phase",
		`{"name":"a","ph":"i","s":"g","pid":1,"tid":1}`:                                     "no time",
		`{"name":"a","ph":"i","s":"g","ts":5,"pid":1,"tid":1,"color":"red"}`:                "unknown field",
		`{"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":1,"args":{"wrong":"a value"}}`: "metadata",
	} {
		got := strings.Join(traceProblems(`{"displayTimeUnit":"ms","traceEvents":[`+events+`]}`), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", events, got, want)
		}
	}
}
