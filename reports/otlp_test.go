package reports

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/reports/export"
)

// parseSpans reads the lines of format otlp and reports spans that a collector would refuse.
func parseSpans(text string) (all []export.OTLPSpan, problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	ids := map[string]bool{}
	traceID, spanID := regexp.MustCompile(`^[0-9a-f]{32}$`), regexp.MustCompile(`^[0-9a-f]{16}$`)
	for line := range strings.Lines(text) {
		var request export.OTLPRequest
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&request); err != nil {
			return nil, []string{err.Error()}
		}
		for _, resource := range request.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				all = append(all, scope.Spans...)
			}
			if len(resource.Resource.Attributes) == 0 || resource.Resource.Attributes[0].Key != "service.name" {
				bad("no service.name")
			}
		}
	}
	for i, s := range all {
		from, err := strconv.ParseUint(s.Start, 10, 64)
		until, err2 := strconv.ParseUint(s.End, 10, 64)
		switch {
		case err != nil || err2 != nil || until < from:
			bad("span %d lasts from %q to %q", i, s.Start, s.End)
		case !traceID.MatchString(s.TraceID) || !spanID.MatchString(s.SpanID) || ids[s.SpanID]:
			bad("span %d has ids %q and %q", i, s.TraceID, s.SpanID)
		case s.TraceID != all[0].TraceID || i == 0 && s.Parent != "" || i > 0 && s.Parent != all[0].SpanID:
			bad("span %d of trace %q has parent %q", i, s.TraceID, s.Parent)
		case s.Name == "" || strings.ContainsAny(s.Name, "\n\x1b"):
			bad("span %d is named %q", i, s.Name)
		}
		ids[s.SpanID] = true
	}
	return all, problems
}

// TestOTLP: every run has well-formed spans, one for each operation, hold and fault, and one for itself.
func TestOTLP(t *testing.T) {
	for _, s := range append(allRuns(), twoKeyRun(), failoverRun(hostile)) {
		r := s.load(t)
		all, problems := parseSpans(render(t, r, "otlp"))
		for _, problem := range problems {
			t.Errorf("%s: %s", s.m.Scenario, problem)
		}
		if want := 1 + len(r.History.Spans) + len(r.Holds) + len(r.Faults); len(all) != want {
			t.Errorf("%s: %d spans, want %d", s.m.Scenario, len(all), want)
		}
	}
	r := failoverRun("orders").load(t)
	out := render(t, r, "otlp")
	all, _ := parseSpans(out)
	if all[0].Status == nil || all[0].Status.Code != 2 || len(all[0].Events) == 0 {
		t.Errorf("the span of an unsafe run: %+v", all[0])
	}
	for _, want := range []string{`"name":"acquire orders"`, `"name":"hold orders"`, `"name":"fault kill n1"`,
		`{"key":"lockchaos.verdict","value":{"stringValue":"unsafe"}}`,
		`{"key":"lockchaos.property","value":{"stringValue":"exclusion"}}`,
		`{"key":"lockchaos.client","value":{"intValue":"3"}}`, `"message":"the outcome is unknown"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s", want)
		}
	}
	start := r.Manifest.Started.Add(r.Manifest.Phases[1].Start).UnixNano()
	if all[0].Start != strconv.FormatInt(start, 10) {
		t.Errorf("the run starts at %s, want %d", all[0].Start, start)
	}
}

// TestOTLPRequestsAreBounded: a large history is several requests.
func TestOTLPRequestsAreBounded(t *testing.T) {
	s := failoverRun("orders").load(t)
	for len(s.History.Spans) < 2*export.SpansPerRequest {
		s.History.Spans = append(s.History.Spans, s.History.Spans...)
	}
	out := render(t, s, "otlp")
	all, problems := parseSpans(out)
	lines := strings.Count(out, "\n")
	if want := (len(all) + export.SpansPerRequest - 1) / export.SpansPerRequest; lines != want || lines < 3 ||
		problems != nil {
		t.Errorf("%d requests for %d spans, want %d; %v", lines, len(all), want, problems)
	}
}
