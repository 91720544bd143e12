package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReportOfHistory: a history of another suite has a report, which names the unknown facts.
func TestReportOfHistory(t *testing.T) {
	source, err := os.ReadFile("testdata/histories/etcd.edn")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "history.edn")
	if err := os.WriteFile(file, source, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, dir} { // of Jepsen
		code, stdout, stderr := chaos("report", path)
		page := filepath.Join(dir, "history.report.html")
		if code != exitSafe || strings.TrimSpace(stdout) != page {
			t.Fatalf("%s: exit code %d, %q: %s", path, code, stdout, stderr)
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"history.edn", "whether any was injected, and when, is not known",
			"which of them granted the lock is not known", "SAFE with --assume not-held-ends", "as they were read",
			`&#34;f&#34;:&#34;acquire&#34;`, "client 0: acquire of the lock succeeds"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: the page lacks %q", path, want)
			}
		}
		for _, bad := range []string{"seed 0", "No fault was injected", "Configuration", "``"} {
			if strings.Contains(string(text), ">"+bad) || strings.Contains(string(text), "· "+bad) {
				t.Errorf("%s: the page has %q", path, bad)
			}
		}
		if err := os.Remove(page); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, _ := chaos("report", file, "--dialect", "etcd", "--format", "text")
	if code != exitSafe || !strings.HasPrefix(stdout, "SAFE  history.edn\n") ||
		!strings.Contains(stdout, "UNSAFE without assumptions") {
		t.Errorf("with a dialect: exit code %d, %s", code, stdout)
	}
}

// TestReportJudgesAsCheck: every flag about judging has the effect on a report that it has on chaos check.
func TestReportJudgesAsCheck(t *testing.T) {
	events := `{:type :invoke, :f :acquire, :process 0, :time 1000000}
{:type :ok, :f :acquire, :process 0, :time 2000000}
{:type :invoke, :f :acquire, :process 1, :time 3000000}
{:type :ok, :f :acquire, :process 1, :time 4000000}
{:type :invoke, :f :release, :process 0, :time 5000000}
{:type :ok, :f :release, :process 0, :time 6000000}
`
	file := filepath.Join(t.TempDir(), "two.edn")
	if err := os.WriteFile(file, []byte(events), 0o600); err != nil {
		t.Fatal(err)
	}
	verdicts := map[string]bool{}
	for _, flags := range [][]string{nil, {"--clock-error", "5ms"}, {"--permits", "2"}, {"--property", "recovery"}} {
		_, checked, _ := chaos(append([]string{"check", file}, flags...)...)
		code, reported, stderr := chaos(append([]string{"report", file, "--format", "text"}, flags...)...)
		verdict, _, _ := strings.Cut(checked, ":")
		if code != exitSafe || verdict == "" || !strings.HasPrefix(reported, verdict) {
			t.Errorf("%v: check says %q, report (%d): %s%s", flags, verdict, code, reported, stderr)
		}
		verdicts[verdict] = true
	}
	if len(verdicts) < 2 {
		t.Errorf("the flags have no effect: always %v", verdicts)
	}
	for _, bad := range [][]string{{"--permits", "k"}, {"--property", "no"}, {"--lock-kind", "no"}} {
		if code, _, stderr := chaos(append([]string{"report", file}, bad...)...); code != exitUsage {
			t.Errorf("%v: exit code %d, %s", bad, code, stderr)
		}
	}
}

// TestReportNamesProcesses: a client with a name is reported by it, also if the name is markup.
func TestReportNamesProcesses(t *testing.T) {
	events := `{:type :invoke, :f :acquire, :process "<b>ann", :time 1}
{:type :ok, :f :acquire, :process "<b>ann", :time 2}
{:type :invoke, :f :acquire, :process "bob", :time 3}
{:type :ok, :f :acquire, :process "bob", :time 4}
{:type :info, :f :start, :process :nemesis, :time 5, :value "cut off n1"}
`
	file := filepath.Join(t.TempDir(), "names.edn")
	if err := os.WriteFile(file, []byte(events), 0o600); err != nil {
		t.Fatal(err)
	}
	const escaped = "client &lt;b&gt;ann"
	for format, want := range map[string]string{"html": escaped, "text": "client <b>ann", "markdown": escaped,
		"svg": escaped} {
		code, stdout, stderr := chaos("report", file, "--format", format)
		if code != exitSafe || !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) ||
			!strings.Contains(stdout, "client bob") || strings.Contains(stdout, "client 100000") {
			t.Errorf("%s: exit code %d, want %s: %s %s", format, code, want, stdout[:min(len(stdout), 600)], stderr)
		}
		if (format == "html" || format == "text") && !strings.Contains(strings.Join(strings.Fields(stdout), " "),
			"not which faults took effect") {
			t.Errorf("%s does not say what is not known about the faults", format)
		}
	}
}

func TestReportRefusals(t *testing.T) {
	run := t.TempDir()
	if err := os.WriteFile(filepath.Join(run, "run.json"), []byte(`{"format":3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"report", "-"}, "standard input needs --to FILE or --format"},
		{[]string{"report", run, "--owner", "process"}, "apply only to a history file"},
		{[]string{"report", run, "--fair"}, "chaos check judges a run directory again"},
		{[]string{"report", "testdata/lists.txt"}, "lists.txt"},
	} {
		if code, _, stderr := chaos(c.args...); code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, %s; want %q", c.args, code, stderr, c.want)
		}
	}
}
