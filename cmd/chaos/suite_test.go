package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// TestSuite: a suite on simulated servers, a suite with an unexpected verdict, and its shards.
func TestSuite(t *testing.T) {
	out := t.TempDir()
	if code, stdout, stderr := chaos("suite", "--backend", "sim", "--seed", "1", "--out", out,
		"--filter", "failover|gc-pause|contention,topology=s*"); code != exitSafe || !strings.HasPrefix(stdout, "3 of 3 runs") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if kept, _ := os.ReadDir(filepath.Join(out, suite.RunsDir)); len(kept) > 0 {
		t.Errorf("runs that are as expected were kept: %v", kept)
	}
	quick, _, _ := strings.Cut(quickScenario, "expect:")
	wrong := writeScenario(t, quick+"expect: safe\n")
	args := []string{"suite", wrong, "failover", "--backend", "sim", "--seed", "1", "--out"}
	code, stdout, stderr := chaos(append(args, out)...)
	if code != exitUnsafe || !strings.Contains(stdout, "DIFFERS  quick, seed 1: expected safe, got unsafe, outlived lease") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	s, err := suite.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(out, s.Notable()[0].Run, "report.html")
	if _, err := os.Stat(report); err != nil {
		t.Error(err)
	}
	var shards []string
	for _, shard := range []string{"1/2", "2/2"} {
		dir := filepath.Join(t.TempDir(), "shard")
		chaos(append(args, dir, "--shard", shard)...)
		shards = append(shards, dir)
	}
	merged := filepath.Join(t.TempDir(), "merged")
	code, again, stderr := chaos("suite", "merge", shards[0], shards[1], "--out", merged)
	if code != exitUnsafe || !strings.HasPrefix(again, stdout[:strings.Index(stdout, "\n")]) {
		t.Errorf("merged: exit code %d\n%s%s", code, again, stderr)
	}
}

// TestSuiteFullDisk: results that cannot be written are printed, and the error is the environment's.
func TestSuiteFullDisk(t *testing.T) {
	out := t.TempDir()
	if err := os.Symlink("/dev/full", filepath.Join(out, suite.JSONFile+".new")); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := chaos("suite", "gc-pause", "--backend", "sim", "--seed", "1", "--out", out)
	if code != exitEnvironment || !strings.HasPrefix(stdout, "1 of 1 run as expected") ||
		!strings.Contains(stderr, "writing suite.json") || !strings.Contains(stderr, "no space left") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestIndex: the results of a suite become a page; adding them twice changes nothing.
func TestIndex(t *testing.T) {
	out, nights := t.TempDir(), filepath.Join(t.TempDir(), "nights")
	if code, _, stderr := chaos("suite", "gc-pause", "--backend", "sim", "--repeat", "2", "--out", out); code != exitSafe {
		t.Fatal(stderr)
	}
	code, stdout, stderr := chaos("index", nights, "--add", out, "--add", out)
	if code != exitSafe || !strings.HasPrefix(stdout, "0 alerts of 1 scenario\n") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if text, err := os.ReadFile(filepath.Join(nights, suite.HistoryFile)); err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("history: %v\n%s", err, text)
	}
	if text, err := os.ReadFile(filepath.Join(nights, suite.PageFile)); err != nil || !strings.Contains(string(text), "0 of 2 runs") {
		t.Errorf("page: %v\n%s", err, text)
	}
	if code, _, _ := chaos("index", nights, "--add", nights); code != exitUsage {
		t.Errorf("a folder without a suite: exit code %d", code)
	}
	typo := filepath.Join(t.TempDir(), "typo")
	if code, _, _ := chaos("index", typo, "--add", out, "--add", filepath.Join(out, "missing")); code != exitUsage {
		t.Errorf("no such folder: exit code %d", code)
	}
	if _, err := os.Stat(typo); !os.IsNotExist(err) {
		t.Errorf("a refused command has made the folder: %v", err)
	}
}

// TestIndexWaits: of two chaos index the second one says that it waits, and an interrupt ends the wait.
func TestIndexWaits(t *testing.T) {
	nights := t.TempDir()
	lock, err := suite.LockHistory(t.Context(), nights, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	cmd, _ := program(t, "index", nights)
	pipe, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(pipe)
	line, err := said.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "waiting for another program") {
		t.Errorf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(said)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(string(rest), "waiting for the lock") {
		t.Errorf("exit code %d, %q", code, rest)
	}
}

// TestSuiteUsage: flags that cannot be meant.
func TestSuiteUsage(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	for want, args := range map[string][]string{
		"INDEX from 1 to COUNT":  {"--shard", "3/2"},
		"inconclusive=N":         {"--retry", "unsafe=2"},
		`"inconclusive=2x"`:      {"--retry", "inconclusive=2x"},
		"unknown field":          {"--filter", "color=red"},
		"no scenario meets":      {"--filter", "nothing"},
		"must be positive":       {"--repeat", "0"},
		"unknown backend":        {"--backend", "cloud"},
		"reading the quarantine": {"--quarantine", "missing.yaml"},
		"at least one directory": {"merge"},
	} {
		args = append([]string{"suite", "--backend", "sim"}, args...)
		if args[len(args)-1] == "merge" {
			args = []string{"suite", "merge"}
		}
		if code, _, stderr := chaos(args...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, want one about %q\n%s", args, code, want, stderr)
		}
	}
}

// TestSuiteLock: another lock replaces each scenario's, and scenarios that it cannot run are skipped.
func TestSuiteLock(t *testing.T) {
	code, stdout, stderr := chaos("suite", "contention", "mixed-fenced", "redlock-contention", "--backend", "sim",
		"--lock", "fair", "--out", t.TempDir(), "--json", "--seed", "1")
	var got struct {
		Lock string
		Rows []struct{ Scenario, Lock, Outcome, Repeat string }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || len(got.Rows) != 3 {
		t.Fatalf("%d %v\n%s%s", code, err, stdout, stderr)
	}
	for _, row := range got.Rows {
		skipped := row.Scenario == "redlock-contention"
		if row.Lock != "fair" || (row.Outcome == "skipped") != skipped ||
			!skipped && !strings.Contains(row.Repeat, "--lock fair") {
			t.Errorf("%+v", row)
		}
	}
	if got.Lock != "fair" {
		t.Errorf("the suite is of lock %q", got.Lock)
	}
	code, stdout, stderr = chaos("suite", "redlock-contention", "--lock", "redislock/lock", "--out", t.TempDir(), "--json")
	if code != 0 || !strings.Contains(stdout, "redislock/lock") {
		t.Errorf("the lock of an adapter: %d %s%s", code, stdout, stderr)
	}
	if code, _, stderr := chaos("suite", "--lock", "fiar", "--out", t.TempDir()); code != exitUsage ||
		!strings.Contains(stderr, "did you mean fair") {
		t.Errorf("an unknown lock: %d %s", code, stderr)
	}
}

// TestSuiteGenerated: a scenario that a seed draws for the lock is a row like any other.
func TestSuiteGenerated(t *testing.T) {
	code, stdout, stderr := chaos("suite", "generated-5", "--lock", "mutex", "--backend", "sim", "--seed", "1", "--json",
		"--out", t.TempDir())
	var got suite.Suite
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitSafe || len(got.Rows) != 1 {
		t.Fatalf("%d %v\n%s%s", code, err, stdout, stderr)
	}
	if r := got.Rows[0]; r.Scenario != "generated-5" || r.Lock != "mutex" || r.Outcome != suite.AsExpected {
		t.Errorf("%+v", r)
	}
	for _, row := range []struct {
		args []string
		want string
	}{
		{nil, "a generated scenario is drawn for a lock: name it with --lock"},
		{[]string{"--lock", "exec:true", "--filter", "lock=none"}, "no scenario meets all conditions"},
	} {
		args := append([]string{"suite", "generated-5", "--out", t.TempDir()}, row.args...)
		if code, _, stderr := chaos(args...); code != exitUsage || !strings.Contains(stderr, row.want) {
			t.Errorf("%v: exit code %d, want %q\n%s", row.args, code, row.want, stderr)
		}
	}
}

// TestServe refuses paths that it cannot serve.
func TestServe(t *testing.T) {
	for _, row := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"serve"}, exitUsage, "needs a directory"},
		{[]string{"serve", filepath.Join(t.TempDir(), "none")}, exitUsage, "no such file"},
		{[]string{"serve", t.TempDir(), "--addr", "0.0.0.0:1"}, exitUsage, "--addr 0.0.0.0:1: not a loopback address"},
	} {
		if code, _, stderr := chaos(row.args...); code != row.code || !strings.Contains(stderr, row.want) {
			t.Errorf("%v: %d %s", row.args, code, stderr)
		}
	}
}
