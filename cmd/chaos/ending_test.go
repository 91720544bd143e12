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

// program is this program as a process of its own, with a temporary folder of
// its own.
func program(t *testing.T, args ...string) (cmd *exec.Cmd, temp string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	temp = t.TempDir()
	cmd = exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+temp)
	return cmd, temp
}

// when starts cmd, does something once, when it tells of a phase of its run, and
// returns what it had told when it has ended. After limit it is killed; 0: never.
func when(t *testing.T, cmd *exec.Cmd, limit time.Duration, phase string, do func()) (said string) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
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
	done := false // a second Ctrl-C forces
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said += lines.Text() + "\n"
		if !done && strings.Contains(lines.Text(), phase) {
			done = true
			do()
		}
	}
	_ = cmd.Wait()
	return said
}

// TestHangUp: a terminal that is closed ends a run as Ctrl-C does.
func TestHangUp(t *testing.T) {
	needRedis(t)
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("NOT RUN: this program was started to outlive its terminal (nohup), and so is what it starts")
	}
	out := t.TempDir()
	cmd, temp := program(t, "run", "--scenario", writeScenario(t, quickScenario), "--duration", "1m", "--out", out)
	when(t, cmd, 0, "clients are at work", func() {
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	})
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("it ended with %v, want exit code %d", cmd.ProcessState, exitInterrupted)
	}
	if _, err := os.Stat(filepath.Join(out, "latest", "report.html")); err != nil {
		t.Error(err)
	}
	nothingIn(t, temp)
}

// TestNobodyReads: a run whose output nobody reads any more (| head -1) goes on
// to its end, and leaves nothing but its directory.
func TestNobodyReads(t *testing.T) {
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
		t.Errorf("it ended with %v (%v), want exit code %d", cmd.ProcessState, err, exitBrokenPipe)
	}
	if _, err := os.Stat(filepath.Join(out, "latest", "report.html")); err != nil {
		t.Error(err)
	}
	nothingIn(t, temp)
}

// TestKilledAtOnce: the directory of a run that was killed before its first
// event can be checked and shown.
func TestKilledAtOnce(t *testing.T) {
	needRedis(t)
	out := t.TempDir()
	cmd, temp := program(t, "run", "--scenario", "failover", "--out", out)
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
	if said, err := clean.CombinedOutput(); err != nil || !bytes.Contains(said, []byte("removed")) {
		t.Errorf("clean: %v\n%s", err, said)
	}
	nothingIn(t, temp)
}

func nothingIn(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("left behind: %s", e.Name())
	}
}
