package evaluation

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/internal/clientcheck"
	"github.com/lockchaos/lockchaos/internal/evaluation/tally"
	"github.com/lockchaos/lockchaos/promise"
)

// TestExitCode: a finding of the lock decides, unless the baseline accepts it; nothing is decided by too few runs.
func TestExitCode(t *testing.T) {
	own := Finding{Own: true, Cause: "stolen", Property: checker.Exclusion}
	accepted := own
	accepted.Accepted = "ann until 2026-12-31"
	enough := tally.Runs{All: 10, Safe: 8, Unsafe: 1, Inconclusive: 1}
	for _, test := range []struct {
		name string
		r    Report
		want int
	}{
		{"safe", Report{Result: tally.Result{Runs: enough}}, 0},
		{"own", Report{Result: tally.Result{Runs: enough, Findings: []Finding{own}}}, exitFinding},
		{"accepted", Report{Result: tally.Result{Runs: enough, Findings: []Finding{accepted}}}, 0},
		{"any lock", Report{Result: tally.Result{Runs: enough, Findings: []Finding{{Cause: "stolen"}}}}, 0},
		{"mostly inconclusive", Report{Result: tally.Result{Runs: tally.Runs{All: 10, Safe: 4, Inconclusive: 6}}}, exitTooLittle},
		{"few", Report{Result: tally.Result{Runs: tally.Runs{All: 2, Safe: 2}}}, exitTooLittle},
		{"few, and a finding", Report{Result: tally.Result{Runs: tally.Runs{All: 1, Unsafe: 1}, Findings: []Finding{own}}}, exitFinding},
		{"a client that does not start", Report{Client: []clientcheck.Finding{{Check: clientcheck.Init, Last: true}}}, exitUnable},
		{"a lock that excludes nobody", Report{Client: []clientcheck.Finding{{Check: "acquire", Last: true}}}, exitFinding},
		{"a check that does not matter", Report{Result: tally.Result{Runs: enough}, Client: []clientcheck.Finding{{Check: "close"}}}, 0},
	} {
		if got := test.r.ExitCode(); got != test.want {
			t.Errorf("%s: exit code %d, want %d: %s", test.name, got, test.want, test.r.Sentence())
		}
	}
}

// TestSentence: a test that was interrupted says so, unless a finding decides.
func TestSentence(t *testing.T) {
	r := Report{Interrupted: true, Result: tally.Result{Runs: tally.Runs{All: 4, Safe: 4}}}
	if got := r.Sentence(); got != "interrupted after 4 runs (0 generated) without a finding of this lock" {
		t.Error(got)
	}
	r.Findings = []Finding{{Own: true}}
	if got := r.Sentence(); got != "1 finding of this lock in 4 runs (0 generated)" {
		t.Error(got)
	}
}

// TestBaseline: an entry accepts its cause until its day is over; a wrong file is an error that names the place.
func TestBaseline(t *testing.T) {
	write := func(text string) string {
		file := filepath.Join(t.TempDir(), "baseline.json")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	b, err := ReadBaseline(write(`{"accept": [
		{"cause": "stolen", "property": "exclusion", "owner": "ann", "until": "2026-12-31", "reason": "LOCK-1"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	day := func(text string) time.Time {
		at, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	f := Finding{Own: true, Cause: "stolen", Property: checker.Exclusion}
	other := f
	other.Property = checker.Honesty
	found := []Finding{f}
	if b.acceptance(f, day("2026-12-31 23:59:59")) != "ann until 2026-12-31" || len(b.notes(found, day("2026-12-31 23:59:59"))) > 0 {
		t.Error("the entry does not accept its cause on its last day")
	}
	if b.acceptance(f, day("2027-01-01 00:00:00")) != "" || len(b.notes(found, day("2027-01-01 00:00:00"))) != 1 {
		t.Error("the entry is in force after its last day, or there is no note of it")
	}
	if notes := b.notes([]Finding{other}, day("2026-12-01 00:00:00")); len(notes) != 1 || !strings.Contains(notes[0], "no run showed") {
		t.Errorf("notes about an entry of which nothing was found: %q", notes)
	}
	if b.acceptance(other, day("2026-12-01 00:00:00")) != "" {
		t.Error("the entry accepts another property")
	}
	for text, want := range map[string]string{
		`{"accept": [{"owner": "ann", "until": "2026-12-31"}]}`:    "entry 1: cause is missing",
		`{"accept": [{"cause": "stolen", "until": "2026-12-31"}]}`: "entry 1: owner is missing",
		`{"accept": [{"cause": "s", "owner": "a", "until": "x"}]}`: `entry 1: until: expected a day such as 2026-12-31, got "x"`,
		"{\"accept\": [\n\t{\"cuase\": \"s\"}]}":                   `[2:3] unknown field "cuase"`,
		"{\"accept\": [\n{\"cause\": [1]}]}":                       "[2:11] ",
		"{":                                                        "[1:1] ",
		"[]":                                                       "[1:1] ",
		`{"accept": []} more`:                                      "[1:16] ",
		`{"accept": [{"cause": "s", "property": "p", "owner": "a", "until": "2026-12-31"}]}`: `entry 1: there is no property "p"`,
	} {
		if _, err := ReadBaseline(write(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestFiles: every file of a report has its findings, and texts of others are escaped.
func TestFiles(t *testing.T) {
	r := Report{
		Lock: `exec:./lock "<i>"`, Unstated: promise.Watchdog, Started: time.Unix(0, 0), Finished: time.Unix(60, 0), Topologies: []string{"single"},
		Result: tally.Result{
			Runs: tally.Runs{All: 10, Safe: 8, Unsafe: 2},
			Findings: []Finding{
				{Own: true, Cause: "stolen", Class: checker.BrokenPromise, Sentence: "Client 1 took `orders` <script>", Runs: 2, Of: 10,
					Seen: []tally.Seen{{Scenario: "mixed", Runs: 1, Of: 3}, {Scenario: "gc-pause", Runs: 1, Of: 1}}, Repeat: "chaos run --lock 'exec:./my lock'", Run: "runs/mixed/1",
					Advice: []tally.Advice{{Text: "Compare before you renew"}}},
				{Cause: "stalled-holder", Sentence: "Client 2 was paused", Runs: 1, Of: 10, Seen: []tally.Seen{{Scenario: "fenced-pause", Runs: 1, Of: 1}},
					Because: "fault pause-client"},
			},
			Held:      []tally.Held{{Property: checker.Recovery, Runs: 9, Text: "31 probes"}},
			NotTested: []tally.NotTested{{Subject: "17 scenarios: failover", Why: "topology sentinel", Needs: "--topology sentinel"}},
		},
	}
	unknown := r
	unknown.Findings = []Finding{{Own: true, Property: checker.Honesty}}
	if got := unknown.Next(); !strings.HasPrefix(got, "Find the cause of the first finding in its report") {
		t.Errorf("a finding without a change: %s", got)
	}
	dir := t.TempDir()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"text": text.String()}
	for _, name := range []string{JSONFile, junitFile, summaryFile, PageFile} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	for name, has := range map[string][]string{
		"text": {"1 finding of this lock in 10 runs", "Change the lock as the first finding says", "Your lock\n  stolen (broken promise), in 1 of 3 runs of mixed, and in 1 of the 7 others",
			"change: Compare before you renew", "Any lock of this kind\n  stalled-holder", "recovery  9 runs  31 probes",
			"17 scenarios: failover: topology sentinel (needs --topology sentinel)"},
		JSONFile:    {`"cause": "stolen"`, `"because": "fault pause-client"`},
		summaryFile: {"## ✕ chaos test", "State watchdog in the reply to init", "### Your lock", "stolen (broken promise)", "Compare before you renew", "### Holds"},
		PageFile: {"<p>Change the lock as the first", "<code>orders</code> &lt;script&gt;", `href="runs/mixed/1/report.html"`, "Compare before you renew",
			"need not survive fault pause-client", "31 probes", "--topology sentinel", "<span>&#39;exec:./my lock&#39;</span>"},
	} {
		for _, want := range has {
			if !strings.Contains(files[name], want) {
				t.Errorf("%s lacks %q:\n%s", name, want, files[name])
			}
		}
	}
	if strings.Contains(files[PageFile], "<script>") || strings.Contains(files[PageFile], "<i>") {
		t.Error("the page has text of others unescaped")
	}
	var junit struct {
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Tests    int `xml:"tests,attr"`
	}
	if err := xml.Unmarshal([]byte(files[junitFile]), &junit); err != nil {
		t.Fatal(err)
	}
	if junit.Failures != 1 || junit.Skipped != 1 || junit.Tests != 3 {
		t.Errorf("JUnit: %+v\n%s", junit, files[junitFile])
	}
}
