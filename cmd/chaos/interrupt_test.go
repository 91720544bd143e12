package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is chaos as a child process with its own temporary directory.
func program(t *testing.T, args ...string) (cmd *exec.Cmd, temp string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	temp = t.TempDir()
	cmd = exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	return cmd, temp
}

// when starts cmd, calls do when it prints that phase of its run, and returns
// its standard error when it has exited. After limit it is killed; 0: never.
func when(t *testing.T, cmd *exec.Cmd, limit time.Duration, phase string, do func()) (stderr string) {
	t.Helper()
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if limit > 0 {
		tooLong := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
		defer tooLong.Stop()
	}
	done := false // a second Ctrl-C would exit at once
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		stderr += lines.Text() + "\n"
		if !done && strings.Contains(lines.Text(), phase) {
			done = true
			do()
		}
	}
	_ = cmd.Wait()
	return stderr
}

// TestHangUp: SIGHUP, from a closed terminal, ends a run like Ctrl-C.
func TestHangUp(t *testing.T) {
	needRedis(t)
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("NOT RUN: SIGHUP is ignored (nohup), and children inherit that")
	}
	out := t.TempDir()
	cmd, temp := program(t, "run", "--scenario", writeScenario(t, quickScenario), "--duration", "1m", "--out", out)
	when(t, cmd, 0, "running the workload", func() {
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	})
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exited with %v, want exit code %d", cmd.ProcessState, exitInterrupted)
	}
	if _, err := os.Stat(filepath.Join(out, "latest", "report.html")); err != nil {
		t.Error(err)
	}
	nothingIn(t, temp)
}

// TestClosedStdout: a run whose output is closed (| head -1) completes, and
// leaves only its run directory.
func TestClosedStdout(t *testing.T) {
	needRedis(t)
	out := t.TempDir()
	cmd, temp := program(t, "run", "--scenario", writeScenario(t, quickScenario), "--out", out)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	_ = read.Close()
	err = cmd.Run()
	_ = write.Close()
	if code := cmd.ProcessState.ExitCode(); code != exitBrokenPipe {
		t.Errorf("exited with %v (%v), want exit code %d", cmd.ProcessState, err, exitBrokenPipe)
	}
	if _, err := os.Stat(filepath.Join(out, "latest", "report.html")); err != nil {
		t.Error(err)
	}
	nothingIn(t, temp)
}

// TestKilledAtOnce: a run that was killed before its first event can be judged
// and rendered.
func TestKilledAtOnce(t *testing.T) {
	needRedis(t)
	out := t.TempDir()
	silent := "exec:sh " + writeScenario(t, "exec cat >/dev/null") // the run does not begin before it is killed
	cmd, temp := program(t, "run", "--scenario", "failover", "--out", out, "--lock", silent, "--init-timeout", "10m")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.Contains(lines.Text(), "starting servers") {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	dir := filepath.Join(out, "latest")
	if code, stdout, stderr := chaos("check", dir); code != exitInconclusive {
		t.Errorf("check: exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := chaos("report", dir, "--format", "text"); code != exitSafe ||
		!strings.HasPrefix(stdout, "INCONCLUSIVE") || !strings.Contains(stdout, "was killed") {
		t.Errorf("report: exit code %d\n%s%s", code, stdout, stderr)
	}
	clean, _ := program(t, "clean")
	clean.Env = append(clean.Env, "TMPDIR="+temp)
	if output, err := clean.CombinedOutput(); err != nil || !bytes.Contains(output, []byte("removed")) {
		t.Errorf("clean: %v\n%s", err, output)
	}
	nothingIn(t, temp)
}

func nothingIn(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("left behind: %s", e.Name())
	}
}

// TestCutHistory: samples of the time after a history ends, as on a full disk, convict nobody.
func TestCutHistory(t *testing.T) {
	out := t.TempDir()
	if code, _, stderr := chaos("run", "--scenario", "contention", "--backend", "sim", "--seed", "1", "--out", out,
		"--set", "duration=3s"); code != exitSafe {
		t.Fatal(stderr)
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(out, "latest"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "history.jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte(`"type":"invoke"`)) && bytes.Contains(line, []byte(`"f":"release"`)) {
			break
		}
		whole += len(line)
	}
	if err := os.WriteFile(file, text[:whole], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", dir}, {"report", dir, "--format", "text"}} {
		if _, stdout, stderr := chaos(args...); strings.Contains(stdout, "UNSAFE") {
			t.Errorf("%v\n%s%s", args, stdout, stderr)
		}
	}
}
