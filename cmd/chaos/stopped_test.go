package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// stoppedFor is longer than the slack of the checkers and than most leases.
const stoppedFor = 3 * time.Second

// TestStoppedHarness: SIGSTOP of the harness, as Ctrl-Z has it, convicts no lock.
func TestStoppedHarness(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT RUN: takes a minute; run without -short")
	}
	needRedis(t)
	for _, scenario := range []string{
		"contention", "stuck-holder", "swarm-single", "failover-wait-all", "redlock-contention", "watchdog-dead-client",
		"wait-starved", "min-replicas", "permits-dead-client", "reply-lost-release", "message-lost",
	} {
		t.Run(scenario, func(t *testing.T) {
			dir := runStopped(t, scenario)
			j, err := dir.ReadVerdict()
			if err != nil {
				t.Fatal(err)
			}
			if j.Verdict == checker.Unsafe {
				t.Errorf("%s: %s", dir.Path, j.Sentence)
			}
			h, err := history.ReadFile(dir.File(rundir.HistoryFile))
			if err != nil {
				t.Fatal(err)
			}
			stalled := time.Duration(0)
			for _, f := range h.Faults {
				if f.Name == history.HarnessStalled {
					stalled = max(stalled, f.Lasted)
				}
			}
			if stalled < stoppedFor {
				t.Errorf("the history has a stall of %v, want %v", stalled, stoppedFor)
			}
		})
	}
}

// runStopped runs a scenario and stops the harness once, when the workload has begun.
func runStopped(t *testing.T, scenario string) *rundir.Dir {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	c := exec.Command(self, "run", "--scenario", scenario, "--backend", "process", "--seed", "1", "--out", out)
	c.Env = append(os.Environ(), asProgram+"=1")
	progress, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }()
	lines := bufio.NewScanner(progress)
	for stopped := false; lines.Scan(); {
		if !stopped && strings.Contains(lines.Text(), "running the workload") {
			stopped = true
			go stopForAWhile(c.Process)
		}
	}
	var exit *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	dir, err := rundir.Open(filepath.Join(out, rundir.Latest))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// stopForAWhile stops a process in the second second of its workload.
func stopForAWhile(p *os.Process) {
	<-time.After(1200 * time.Millisecond)
	_ = p.Signal(syscall.SIGSTOP)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for state := ""; !strings.HasPrefix(state, "T"); <-tick.C { // on a busy machine it is stopped later
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if err != nil {
			return // it has ended
		}
		_, state, _ = strings.Cut(string(stat), ") ") // after the name of the program
	}
	<-time.After(stoppedFor + 100*time.Millisecond)
	_ = p.Signal(syscall.SIGCONT)
}
