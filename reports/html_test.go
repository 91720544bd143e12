package reports

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/testkit/browser"
	"github.com/lockchaos/lockchaos/reports/evidence"
	"github.com/lockchaos/lockchaos/reports/export"
	"github.com/lockchaos/lockchaos/reports/story"
	"github.com/lockchaos/lockchaos/reports/timeline"
)

func render(t testing.TB, r *Run, format string) string {
	t.Helper()
	var b bytes.Buffer
	if err := Render(r, format, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// hostile is the name of a lock with markup for every format.
const hostile = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\"'`|]]>&\x1b[31m\n::error::x"

func TestHostileNames(t *testing.T) {
	s := failoverRun(hostile)
	s.m.Scenario, s.m.Summary, s.m.YAML = "x"+hostile, hostile, hostile
	s.m.Repeat = "chaos run --set key=" + hostile
	s.m.Versions = map[string]string{hostile: hostile}
	s.j.Results[0].Violations[0].Text, s.j.Results[0].Summary = hostile, hostile
	r := s.load(t)
	for _, f := range Catalog() {
		out := render(t, r, f.Name)
		if f.Name == "json" || f.Name == "png" {
			continue // a JSON encoder escapes <, > and &; a PNG has no text
		}
		if f.Name != "text" && f.Name != "openmetrics" && (strings.Contains(out, "<script>alert") ||
			strings.Contains(out, "<img")) {
			t.Errorf("%s: markup in the name of a lock was not escaped", f.Name)
		}
		if strings.Contains(out, "\x1b") {
			t.Errorf("%s: an escape sequence in the name of a lock was not replaced", f.Name)
		}
		if (f.Name == "text" || f.Name == "markdown") && strings.Contains(out, "\n::error::") {
			t.Errorf("%s: the name of a lock starts a new line", f.Name)
		}
	}
	for _, f := range []string{"junit", "svg"} {
		if err := wellFormed(render(t, r, f)); err != nil {
			t.Errorf("%s is not well-formed: %v", f, err)
		}
	}
}

func wellFormed(s string) error {
	d := xml.NewDecoder(strings.NewReader(s))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func TestPageIsSelfContained(t *testing.T) {
	for _, s := range allRuns() {
		out := strings.ReplaceAll(render(t, s.load(t), "html"), "</span> <span>", " ") // words of the command do not break
		for _, bad := range []string{"src=\"http", "<link", "url(http", "@import", "ZgotmplZ",
			"<no value>", "NaN", "%!"} {
			if strings.Contains(out, bad) {
				t.Errorf("%s: the page contains %q", s.m.Scenario, bad)
			}
		}
		for _, want := range []string{"Content-Security-Policy", "svg xmlns", s.m.Repeat, "Did every fault take effect?"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: the page lacks %q", s.m.Scenario, want)
			}
		}
	}
}

func TestDrawingsAreWellFormed(t *testing.T) {
	for _, s := range append(allRuns(), failoverRun(hostile)) {
		r := s.load(t)
		picture := timeline.New(r)
		svg, _ := picture.HTML()
		overview := timeline.Overview(r, picture.D.Window)
		for name, text := range map[string]string{"timeline": string(svg), "overview": string(overview)} {
			if err := wellFormed(text); err != nil {
				t.Errorf("%s: %s: %v", s.m.Scenario, name, err)
			}
		}
	}
}

// TestPageHasNoRawDurations: no duration such as 10.620578ms on the page.
func TestPageHasNoRawDurations(t *testing.T) {
	raw := regexp.MustCompile(`>[^<"]*\d\.\d{4,}(ms|s|µs)\b`)
	for _, s := range allRuns() {
		if found := raw.FindString(render(t, s.load(t), "html")); found != "" {
			t.Errorf("%s: the page shows %q", s.m.Scenario, found)
		}
	}
}

func TestCitedEventsAreQuoted(t *testing.T) {
	out := render(t, failoverRun("orders").load(t), "html")
	for _, want := range []string{`href="#e14"`, `id="e14"`, `id="first-violation"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestMissingPartsAreReported(t *testing.T) {
	r := failoverRun("orders").load(t)
	for _, name := range []string{rundir.VerdictFile, rundir.WitnessFile} {
		if err := os.Remove(r.Dir.File(name)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Load(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Catalog() {
		out := strings.Join(strings.Fields(render(t, r, f.Name)), " ")
		if f.Name == "html" || f.Name == "text" || f.Name == "json" || f.Name == "markdown" {
			if !strings.Contains(out, "was judged for this report") {
				t.Errorf("%s does not say where the verdict is from", f.Name)
			}
		}
	}
	if r.Judgement.Verdict != checker.Unsafe || strings.Contains(render(t, r, "html"), "NOT JUDGED") {
		t.Errorf("a run without verdict was not judged: %q", r.Judgement.Verdict)
	}
	if err := os.Remove(r.Dir.File(rundir.HistoryFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(r.Dir); err == nil {
		t.Error("a run without history was loaded")
	}
}

func TestEmptyHistory(t *testing.T) {
	h, err := history.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := evidence.New(rundir.Manifest{}, h, nil, checker.Judgement{})
	for _, f := range Catalog() {
		if out := render(t, r, f.Name); out == "" {
			t.Errorf("%s of an empty history is empty", f.Name)
		}
	}
}

func TestRenderUnknownFormat(t *testing.T) {
	err := Render(idleRun().load(t), "pdf", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "html, text, json, junit, markdown, svg, png") {
		t.Errorf("error %v, want one that lists the formats", err)
	}
}

func TestJSONIsOneObject(t *testing.T) {
	var s export.Summary
	if err := json.Unmarshal([]byte(render(t, failoverRun("orders").load(t), "json")), &s); err != nil {
		t.Fatal(err)
	}
	if s.Verdict != checker.Unsafe || !s.Met || len(s.Story.Steps) == 0 || s.Report == "" {
		t.Errorf("summary lacks something: %+v", s)
	}
}

func TestWriteAll(t *testing.T) {
	r := failoverRun("orders").load(t)
	if err := WriteAll(r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{rundir.ReportFile, rundir.LinearFile, "overlap.svg", "latency.svg", "rate.svg"} {
		if !r.Dir.Has(name) {
			t.Errorf("%s was not written", name)
		}
	}
}

// bigSynth has 100,000 operations of 50 clients and one short violation among them.
func bigSynth() *synth {
	s := newSynth("big", "orders", 50, failoverRun("").m.Topology, 3)
	for i := range 50000 {
		from := float64(i) * 0.4
		st := holdTimes{max(from-19, 0), from, from + 0.3, 5000}
		s.hold(history.Process(i%50), fmt.Sprintf("owner-%06d", i), uint64(i+1), st)
	}
	s.fault(9000, "kill", history.FaultValue{ID: 1, Phase: history.Injected, Target: "n1"})
	s.fault(9001, "kill", history.FaultValue{ID: 1, Phase: history.TookEffect, Target: "n1", Detail: "n1 exited"})
	s.number()
	s.j = checker.Judgement{Verdict: checker.Unsafe, Results: []checker.Result{{Property: checker.Exclusion,
		Outcome: checker.Violated, Total: 1, Violations: []checker.Violation{{Text: "the only violation",
			Key: "orders", Clients: []int{7, 8}, Events: []int{90000, 90001}, Start: ms(9000), End: ms(9000.1)}}}}}
	return s
}

func bigRun(t testing.TB) *Run {
	t.Helper()
	s := bigSynth()
	h, err := history.Build(s.events)
	if err != nil {
		t.Fatal(err)
	}
	r := evidence.New(s.m, h, nil, s.j)
	story.Write(r)
	return r
}

func TestBigRunStaysSmall(t *testing.T) {
	r := bigRun(t)
	if n := len(r.History.Spans); n != 100000 {
		t.Fatalf("%d operations, want 100,000", n)
	}
	out := render(t, r, "html")
	t.Logf("100,000 operations: page of %d bytes", len(out))
	if len(out) > 5<<20 {
		t.Errorf("the page has %d bytes, want at most 5 MiB", len(out))
	}
	if !strings.Contains(out, "the only violation") {
		t.Error("the violation was dropped")
	}
	for _, f := range []string{"svg", "markdown", "text"} {
		if n := len(render(t, r, f)); n > 5<<20 {
			t.Errorf("%s has %d bytes", f, n)
		}
	}
}

// TestPageInBrowser: the console of a browser that opens the page stays empty. The content security policy forbids
// every request, and a browser logs each blocked one, so an empty console also means that the page makes no request.
func TestPageInBrowser(t *testing.T) {
	r := failoverRun("orders").load(t)
	if err := WriteAll(r); err != nil {
		t.Fatal(err)
	}
	cmd := browser.Command(t, "--enable-logging=stderr", "--dump-dom", "file://"+r.Dir.File(rundir.ReportFile))
	var dom, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &dom, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("opening the page: %v\n%s", err, log.String())
	}
	for _, line := range strings.Split(log.String(), "\n") {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("the browser's console: %s", line)
		}
	}
	// The last lines of the script show the tools.
	if !strings.Contains(dom.String(), `<div class="tools">`) {
		t.Error("the script of the page did not run")
	}
}
