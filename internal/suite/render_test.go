package suite

import (
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
)

// nasty is a suite with a row of every outcome and with names that are markup.
func nasty() Suite {
	s := Suite{Format: Format, Version: "v1", Backend: "auto", Started: time.Unix(0, 0), Finished: time.Unix(90, 0),
		Notes: []string{"shard 2/2 is missing"}}
	for i, o := range Outcomes() {
		r := Row{Scenario: "s-" + string(o), Number: 1, Lock: "<b>|mutex", Seed: uint64(i), Expected: "safe", Outcome: o}
		if o != AsExpected {
			r.Why = []string{"a % of b\nfailed: <script>", "c"}
		}
		if o == Differs {
			r.Verdict, r.Class, r.Run, r.Repeat = checker.Unsafe, checker.BrokenPromise, "runs/x/1", "chaos run --scenario x"
		}
		s.Rows = append(s.Rows, r)
	}
	s.Rows = append(s.Rows, Row{Scenario: "known", Number: 2, Expected: "safe", Outcome: Differs, Why: []string{"w"},
		Quarantine: "me until 2026-12-31"})
	return s
}

func rendered(t *testing.T, write func(s Suite, w *strings.Builder) error) string {
	t.Helper()
	var b strings.Builder
	if err := write(nasty(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAnnotations(t *testing.T) {
	text := rendered(t, func(s Suite, w *strings.Builder) error { return s.Annotations(w) })
	lines := strings.Split(strings.TrimSpace(text), "\n")
	first := "::error title=chaos suite%3A s-differs different::expected safe, got unsafe, broken promise. " +
		"a %25 of b%0Afailed: <script>; c. Run it again: chaos run --scenario x"
	if len(lines) != 6 || lines[0] != first {
		t.Errorf("%d annotations; the first is\n%s\nwant\n%s", len(lines), lines[0], first)
	}
	if !strings.HasPrefix(lines[1], "::warning title=chaos suite%3A known different::") {
		t.Errorf("a row in quarantine: %s", lines[1])
	}
}

func TestJUnit(t *testing.T) {
	text := rendered(t, func(s Suite, w *strings.Builder) error { return s.JUnit(w) })
	for _, want := range []string{
		`<testsuites tests="8" failures="2" errors="2" skipped="3">`, `<testcase classname="chaos.auto" name="known (2)"`,
		`<property name="note" value="shard 2/2 is missing">`,
		"[[ATTACHMENT|runs/x/1/report.html]]", `<property name="verdict" value="unsafe, broken promise">`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("JUnit lacks %s:\n%s", want, text)
		}
	}
	for _, outcome := range []Outcome{Broken, Unable} { // the environment or the harness, not the lock
		_, after, _ := strings.Cut(text, `name="s-`+string(outcome)+`"`)
		if one, _, _ := strings.Cut(after, "</testcase>"); !strings.Contains(one, "<error ") || strings.Contains(one, "<failure ") {
			t.Errorf("%s is no error:\n%s", outcome, one)
		}
	}
}

// TestPages: the summary and the page have differences first, and no markup of others.
func TestPages(t *testing.T) {
	for name, text := range map[string]string{
		"summary": rendered(t, func(s Suite, w *strings.Builder) error { return s.Markdown(w) }),
		"page":    rendered(t, func(s Suite, w *strings.Builder) error { return s.Page(w) }),
	} {
		if strings.Contains(text, "<script>") || strings.Contains(text, "<b>") {
			t.Errorf("%s: markup of others:\n%s", name, text)
		}
		for _, want := range []string{
			"1 of 8 runs as expected: 2 different, 1 broken, 1 could not start, 1 inconclusive, 1 not run, 1 skipped",
			"shard 2/2 is missing", "quarantine: me until",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, text)
			}
		}
		if a, b := strings.Index(text, "s-differs"), strings.Index(text, "s-as-expected"); a < 0 || b < a {
			t.Errorf("%s: what differs is not first:\n%s", name, text)
		}
	}
	page := rendered(t, func(s Suite, w *strings.Builder) error { return s.Page(w) })
	if !strings.Contains(page, `<a class="run differs" href="runs/x/1/report.html"`) {
		t.Errorf("the page does not link to the report:\n%s", page)
	}
	if !strings.Contains(page, `.word { white-space: nowrap; }`) || !strings.Contains(page, `<span class="word">--scenario</span>`) {
		t.Errorf("words of commands may be broken at hyphens:\n%s", page)
	}
}
