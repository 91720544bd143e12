package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// TestExploreInterrupted: Ctrl-C ends an exploration at once; its findings are kept and printed.
func TestExploreInterrupted(t *testing.T) {
	out := t.TempDir()
	cmd, temp := program(t, "explore", "--scenario", "failover", "--seeds", "1000000000", "--jobs", "1", "--json",
		"--out", out)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitFinding(t, cmd, out, &stderr)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() != exitInterrupted {
		t.Errorf("%v, want exit code %d\n%s", err, exitInterrupted, stderr.String())
	}
	var found explored
	if err := json.Unmarshal(stdout.Bytes(), &found); err != nil {
		t.Fatalf("%v\n%s", err, stdout.String())
	}
	if found.Runs == 0 || found.Stopped != "interrupted" || len(found.Findings) == 0 {
		t.Fatalf("%+v", found)
	}
	if _, err := os.Stat(filepath.Join(found.Findings[0].Dir, "report.html")); err != nil {
		t.Errorf("the run of the first finding: %v", err)
	}
	nothingIn(t, temp)
}

// awaitFinding waits until an exploration has kept a run.
func awaitFinding(t *testing.T, cmd *exec.Cmd, out string, stderr *bytes.Buffer) {
	t.Helper()
	deadline, tick := time.Now().Add(5*time.Minute), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for kept := false; !kept; <-tick.C {
		_, err := os.Stat(filepath.Join(out, "latest", "history.jsonl"))
		kept = err == nil
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			t.Fatalf("nothing found in five minutes\n%s", stderr.String())
		}
	}
}

// TestExploreKilled: chaos clean removes the leftovers of a killed exploration.
func TestExploreKilled(t *testing.T) {
	out := t.TempDir()
	cmd, temp := program(t, "explore", "--scenario", "failover", "--seeds", "1000000000", "--jobs", "1", "--out", out)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitFinding(t, cmd, out, &stderr)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if left, err := os.ReadDir(temp); err != nil || len(left) == 0 {
		t.Fatalf("the exploration had nothing in its temporary directory: %v", err)
	}
	clean, _ := program(t, "clean")
	clean.Env = append(clean.Env, "TMPDIR="+temp)
	if output, err := clean.CombinedOutput(); err != nil {
		t.Errorf("clean: %v\n%s", err, output)
	}
	nothingIn(t, temp)
}

// TestStalledSimulationEndsTheProgram: with the exit code of an internal error, and advice.
func TestStalledSimulationEndsTheProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, stalls)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitEnvironment || !strings.Contains(string(text), "cannot be simulated in this scenario: virtual time is blocked: a goroutine waits") {
		t.Errorf("%v, want exit code %d\n%s", err, exitEnvironment, text)
	}
}

// TestRunsOfOtherVersions: a run of another layout is refused, one of another version is noted.
func TestRunsOfOtherVersions(t *testing.T) {
	race.Skip(t)
	out := t.TempDir()
	code, stdout, stderr := chaos("explore", "--scenario", "failover", "--seeds", "1", "--first-seed", "1", "--out", out)
	if code != exitUnsafe {
		t.Fatalf("explore: exit code %d\n%s%s", code, stdout, stderr)
	}
	file := filepath.Join(out, "latest", "run.json")
	change := func(from, to string) {
		text, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(text, []byte(from)) {
			t.Fatalf("%s lacks %s: %v", file, from, err)
		}
		if err := os.WriteFile(file, bytes.Replace(text, []byte(from), []byte(to), 1), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	change(`"format": 3`, `"format": 99`)
	for _, command := range []string{"replay", "shrink"} {
		code, _, stderr := chaos(command, filepath.Join(out, "latest"))
		if code != exitUsage || !strings.Contains(stderr, "format is version 99, and this program reads version 3") {
			t.Errorf("%s: exit code %d\n%s", command, code, stderr)
		}
	}
	change(`"format": 99`, `"format": 3`)
	change(`"chaos": "`+version+`"`, `"chaos": "v0.0.9"`)
	code, _, stderr = chaos("replay", filepath.Join(out, "latest"), "--out", t.TempDir())
	if code != exitSafe || !strings.Contains(stderr, "was made by chaos v0.0.9") {
		t.Errorf("replay: exit code %d\n%s", code, stderr)
	}
	code, _, stderr = chaos("shrink", filepath.Join(out, "latest"))
	if code != exitSafe || !strings.Contains(stderr, "was made by chaos v0.0.9") {
		t.Errorf("shrink: exit code %d\n%s", code, stderr)
	}
}
