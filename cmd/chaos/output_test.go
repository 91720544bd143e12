package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestEscapeSequences: an escape sequence in a scenario, a path or a history does
// not reach the terminal.
func TestEscapeSequences(t *testing.T) {
	const esc = "\x1b"
	scenario := writeScenario(t, strings.Replace(quickScenario, "summary: a", `summary: "\x1b[2J\u202e a`, 1)+"\n")
	text, err := os.ReadFile(scenario)
	if err != nil {
		t.Fatal(err)
	}
	closed := strings.Replace(string(text), "than its lease", `than its lease"`, 1)
	if err := os.WriteFile(scenario, []byte(closed), 0o644); err != nil {
		t.Fatal(err)
	}
	history := filepath.Join(t.TempDir(), "history.jsonl")
	var lines strings.Builder
	for _, line := range []string{
		`"time":1,"type":"invoke","process":0`, `"time":2,"type":"ok","process":0`,
		`"time":3,"type":"invoke","process":1`, `"time":4,"type":"ok","process":1`,
	} {
		lines.WriteString(`{` + line + `,"f":"acquire","key":"\u001b[31m","value":{"owner":"\u001b[2J` +
			line[len(line)-1:] + `","valid_ns":9}}` + "\n")
	}
	if err := os.WriteFile(history, []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"run", "--scenario", scenario, "--dry-run"},
		{"run", "--scenario", scenario, "--out", t.TempDir(), "--lock", "exec:\x1b[31mno-such-client"},
		{"run", "--scenario", "/no/" + esc + "[31m.yaml"},
		{"report", "/no/" + esc + "[31m"},
		{"check", "/no/" + esc + "[31m"},
		{"check", history},
	} {
		_, stdout, stderr := chaos(args...)
		if strings.Contains(stdout+stderr, esc) || strings.Contains(stdout+stderr, "\u202e") {
			t.Errorf("%q prints\n%q\n%q", args, stdout, stderr)
		}
		if stdout+stderr == "" {
			t.Errorf("%q prints nothing", args)
		}
	}
	if _, stdout, _ := chaos("check", history); !strings.HasPrefix(stdout, "UNSAFE") {
		t.Errorf("check: %s", stdout)
	}
}

// fullDisk is a standard output that cannot be written.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestOutputThatCannotBeWritten: no command succeeds or ends with the exit code of a verdict if its output is lost.
func TestOutputThatCannotBeWritten(t *testing.T) {
	const verdict = "../../checker/testdata/exclusion-at-the-end.history"
	if code, _, _ := chaos("check", verdict); code != exitUnsafe {
		t.Fatalf("check: exit code %d, want that of an unsafe history", code)
	}
	for _, args := range [][]string{{"--help"}, {"list", "faults"}, {"check", verdict}, {"check", verdict, "--json"}} {
		var stderr strings.Builder
		if code := run(args, streams{strings.NewReader(""), fullDisk{}, &stderr}); code != exitEnvironment ||
			!strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%v: exit code %d, %q", args, code, stderr.String())
		}
	}
	if code := run([]string{"check", "no such file"}, streams{strings.NewReader(""), fullDisk{}, io.Discard}); code != exitUsage {
		t.Errorf("an error that has nothing to do with the output: exit code %d", code)
	}
}
