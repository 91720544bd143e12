package suite

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeGitHub is a gh that records its arguments and has one open issue.
const fakeGitHub = `#!/bin/bash
echo "$@" >> "$GH_LOG"
[ "$2" = list ] && echo '[{"number":7,"title":"chaos: the verdict of setnx on sim has changed"}]'
exit 0
`

// TestOpenIssues: a verdict that changed and was reproduced has one issue, and an open one gets a comment. None is
// opened for a scenario that differs without an alert, that is in quarantine, or that is as expected again.
func TestOpenIssues(t *testing.T) {
	for _, program := range []string{"bash", "jq", "base64"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("NOT RUN: scripts/open-issues needs ", program)
		}
	}
	dir := t.TempDir()
	s := Suite{Format: Format, Rows: []Row{
		{Scenario: "setnx", Backend: "sim", Outcome: Differs, Expected: "safe", Verdict: "unsafe", Seed: 3},
		{Scenario: "fair", Backend: "sim", Outcome: Differs, Seed: 1, Why: []string{"$(touch hacked) `x`"}},
		{Scenario: "fair", Backend: "sim", Outcome: Differs, Seed: 2},
		{Scenario: "once", Backend: "sim", Outcome: Differs, Seed: 4},
		{Scenario: "fair", Backend: "process", Outcome: Differs, Seed: 5},
		{Scenario: "swarm", Backend: "sim", Outcome: Differs, Quarantine: "team until 2026-12-31"},
		{Scenario: "latch", Backend: "sim", Outcome: AsExpected},
	}}
	written(t, s, dir)
	index, err := json.Marshal([]Trend{
		{Scenario: "setnx", Backend: "sim", Alert: "unsafe since 2026-01-02"},
		{Scenario: "fair", Backend: "sim", Alert: "safe since 2026-01-03"},
		{Scenario: "swarm", Backend: "sim", Alert: "unsafe since 2026-01-02"},
		{Scenario: "latch", Backend: "sim", Alert: "unsafe since 2026-01-02"},
		{Scenario: "once", Backend: "sim"}, {Scenario: "fair", Backend: "process"},
	})
	if err != nil {
		t.Fatal(err)
	}
	trends := filepath.Join(dir, "index.json")
	if err := os.WriteFile(trends, index, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "gh"), []byte(fakeGitHub), 0o755); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../scripts/open-issues")
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "log")
	run := exec.Command(script, dir, trends, "https://ci.example/1")
	run.Dir = dir
	run.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "GH_LOG="+log)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for want, n := range map[string]int{
		"issue list": 2, "issue comment 7 --body": 1, "issue create --title chaos: the verdict of fair on sim has changed": 1,
		"seed 1": 1, "seed 2": 1, "seed 3": 1, "https://ci.example/1": 2, "swarm": 0, "latch": 0,
		"once": 0, "on process": 0, "seed 4": 0, "seed 5": 0, "since 2026-01-03": 1, "$(touch hacked) `x`": 1,
	} {
		if c := strings.Count(got, want); c != n {
			t.Errorf("%q is there %d times, want %d:\n%s", want, c, n, got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "hacked")); err == nil {
		t.Error("a text of the suite was executed")
	}
}
