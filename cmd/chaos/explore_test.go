package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExploreShrinkReplay goes from many seeds to one small run that can be replayed.
func TestExploreShrinkReplay(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	code, stdout, stderr := chaos("explore", "--scenario", "failover", "--seeds", "3", "--first-seed", "1", "--jobs", "2",
		"--check-determinism", "2", "--out", out, "--json")
	if code != exitUnsafe {
		t.Fatalf("explore: exit code %d\n%s%s", code, stdout, stderr)
	}
	var found explored
	if err := json.Unmarshal([]byte(stdout), &found); err != nil {
		t.Fatal(err)
	}
	if found.Runs != 3 || found.Unsafe != 3 || len(found.Findings) == 0 || found.States["two holders at once"] != 3 {
		t.Errorf("%s", stdout)
	}
	if f := found.Findings[0]; found.Lock == "" || f.Name != "failover" ||
		!strings.HasPrefix(f.Command, "chaos run --scenario failover --backend sim --seed ") {
		t.Errorf("lock %q, finding %+v", found.Lock, f)
	}
	dir := found.Findings[0].Dir
	if _, err := os.Stat(filepath.Join(dir, "report.html")); err != nil {
		t.Errorf("the run of the first finding: %v", err)
	}

	code, stdout, stderr = chaos("shrink", dir)
	if code != exitSafe || !strings.Contains(stdout, "2 clients instead of 5") ||
		!strings.Contains(stdout, "remaining: ") {
		t.Errorf("shrink: exit code %d\n%s%s", code, stdout, stderr)
	}
	small := filepath.Join(dir, "shrunk-exclusion.yaml")
	code, _, stderr = chaos("run", "--scenario", small, "--backend", "sim", "--out", t.TempDir(), "--seed",
		fmt.Sprint(found.Findings[0].Seed))
	if code != exitUnsafe {
		t.Errorf("the shrunk scenario: exit code %d\n%s", code, stderr)
	}

	code, stdout, stderr = chaos("replay", dir, "--out", t.TempDir())
	if code != exitSafe || !strings.Contains(stderr, "the history is the same, byte by byte") {
		t.Errorf("replay: exit code %d\n%s%s", code, stdout, stderr)
	}
	history := filepath.Join(dir, "history.jsonl")
	text, err := os.ReadFile(history)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(history, append(text, "{}\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr = chaos("replay", dir, "--out", t.TempDir()); code != exitInternal ||
		!strings.Contains(stderr, "the history differs; line") {
		t.Errorf("replay of another history: exit code %d\n%s", code, stderr)
	}
}

func TestExploreRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"explore"}, exitUsage, "--scenario or --lock is required"},
		{[]string{"explore", "--lock", "nosuch"}, exitUsage, "unknown lock"},
		{[]string{"explore", "--lock", "exec:true"}, exitEnvironment, "cannot be simulated"},
		{[]string{"explore", "--lock", "fair", "--set", "topology.kind=quorum", "--first-seed", "2"}, exitUsage,
			"no scenario could be drawn from 100 seeds: --lock fair: lock fair does not run on topology quorum"},
		{[]string{"explore", "--scenario", "failover", "--seeds", "0"}, exitUsage, "--seeds must be positive"},
		{[]string{"explore", "--scenario", "failover", "--seeds", "-3"}, exitUsage, "--seeds must be positive"},
		{[]string{"explore", "--scenario", "failovr"}, exitUsage, "failover"},
		{[]string{"explore", "--scenario", "failover", "--clients", "0"}, exitUsage, "must be positive; omit it to use the scenario's value"},
		{[]string{"explore", "--scenario", "failover", "--duration", "0s"}, exitUsage, "must be positive; omit it to use the scenario's value"},
		{[]string{"explore", "--scenario", "failover", "--clients", "-2"}, exitUsage, "clients must be between 1 and 1,000"},
		{[]string{"explore", "--scenario", "failover", "--duration", "-3s"}, exitUsage, "from 1ms"},
		{[]string{"explore", "--scenario", "failover", "--out", file + "/runs"}, exitEnvironment, "is a file"},
		{[]string{"explore", "--scenario", "failover", "--set", "topology={kind: single}"}, exitUsage, "it needs topology"},
		{[]string{"explore", "--scenario", "swarm", "--set", "faults=[{random: {of: [failover], every: 1s}}]"}, exitUsage,
			"it needs topology"},
		{[]string{"explore", "--scenario", "failover", "--lock", "exec:true"}, exitEnvironment, "real time"},
		{[]string{"shrink", "no-such-directory"}, exitUsage, "no-such-directory"},
		{[]string{"replay", "no-such-directory"}, exitUsage, "no-such-directory"},
		{[]string{"shrink"}, exitUsage, "a run directory"},
	} {
		code, stdout, stderr := chaos(test.args...)
		if code != test.code || !strings.Contains(stderr, test.want) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s%s", test.args, code, test.code, test.want, stdout, stderr)
		}
	}
}

// TestExploreGenerated: seeds of a lock are explored without a scenario, and one of them is run by its name. A corpus
// counts seeds only of explorations with the same flags.
func TestExploreGenerated(t *testing.T) {
	t.Parallel()
	corpus := t.TempDir()
	explore := func(args ...string) string {
		code, stdout, stderr := chaos(append([]string{"explore", "--lock", "mutex", "--seeds", "2", "--first-seed", "1",
			"--no-variations", "--corpus", corpus, "--out", t.TempDir()}, args...)...)
		if code != exitSafe || !strings.Contains(stdout, "unsafe 0") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
		return stderr
	}
	for i, want := range []string{"2 seeds from 1,", "2 seeds from 3,"} {
		if got := explore(); !strings.Contains(got, want) {
			t.Errorf("exploration %d: no %q in\n%s", i, want, got)
		}
	}
	if got := explore("--set", "about=another text"); !strings.Contains(got, "2 seeds from 1,") {
		t.Errorf("with another flag:\n%s", got)
	}
	code, stdout, stderr := chaos("explore", "--lock", "fair", "--duration", "2s", "--seeds", "20", "--first-seed", "1",
		"--no-variations", "--json", "--out", t.TempDir())
	var found explored
	if err := json.Unmarshal([]byte(stdout), &found); err != nil || code != exitSafe {
		t.Fatalf("%v, exit code %d\n%s%s", err, code, stdout, stderr)
	}
	if found.Lock != "fair" || found.Undrawn == 0 || found.Runs+found.Undrawn != 20 || len(found.Refusals) == 0 ||
		!strings.Contains(found.Refusals[0].Reason, "is not before the end of the run (2s)") {
		t.Errorf("with a shorter duration:\n%s", stdout)
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--lock", "fair"}, exitSafe, "summary: fair on "},
		{[]string{"--lock", "fair", "--set", "lock=mutex"}, exitSafe, "summary: mutex on "},
		{[]string{"--lock", `exec:./lock "a b"`}, exitSafe, `lock: exec:./lock "a b"`},
		{nil, exitUsage, "name it with --lock"},
		{[]string{"--lock", "nosuch"}, exitUsage, "unknown lock"},
	} {
		code, stdout, stderr := chaos(append([]string{"run", "--scenario", "generated-5", "--dry-run"}, test.args...)...)
		if code != test.code || !strings.Contains(stdout+stderr, test.want) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s%s", test.args, code, test.code, test.want, stdout, stderr)
		}
	}
}

func TestExploreSafeScenario(t *testing.T) {
	code, stdout, stderr := chaos("explore", "--scenario", "redlock-two-masters-down", "--seeds", "4", "--first-seed", "9",
		"--no-variations", "--out", t.TempDir(), "--expect")
	if code != exitSafe || !strings.Contains(stdout, "unsafe 0 · safe 4") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestExploreExpectNeedsADecision: runs that tested nothing are not as expected.
func TestExploreExpectNeedsADecision(t *testing.T) {
	code, stdout, stderr := chaos("explore", "--scenario", "redlock-contention", "--seeds", "2", "--first-seed", "1",
		"--clients", "1", "--no-variations", "--out", t.TempDir(), "--expect")
	if code != exitInconclusive || !strings.Contains(stdout, "inconclusive 2") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
