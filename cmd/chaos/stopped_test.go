package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/child"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/testkit/rerun"
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
			t.Parallel()
			dir, stopped := runStopped(t, scenario)
			for try := 1; !stopped && rerun.Because(t, try, "it ended before it was stopped"); try++ {
				dir, stopped = runStopped(t, scenario)
			}
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
			if stalled := rerun.LongestStall(h); stalled < stoppedFor {
				t.Errorf("the history has a stall of %v, want %v", stalled, stoppedFor)
			}
		})
	}
}

// runStopped runs a scenario and stops the harness once, in the second second of its workload, and says whether the
// workload was still running then.
func runStopped(t *testing.T, scenario string) (dir *rundir.Dir, stopped bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	c := exec.Command(self, "run", "--scenario", scenario, "--backend", "process", "--seed", "1", "--out", out)
	c.Env = append(os.Environ(), asProgram+"=1")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	defer func() { _ = c.Process.Kill() }()
	stopped, err = stopForAWhile(c.Process, filepath.Join(out, rundir.Latest, rundir.HistoryFile), ended)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if dir, err = rundir.Open(filepath.Join(out, rundir.Latest)); err != nil {
		t.Fatal(err)
	}
	return dir, stopped
}

// stopAfter is when the harness is stopped, in the time of its history.
const stopAfter = 1200 * time.Millisecond

// stopForAWhile stops a process when its history has an event of stopAfter or later, and returns when it has ended.
func stopForAWhile(p *os.Process, file string, ended <-chan error) (stopped bool, err error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !reached(file) {
		select {
		case err := <-ended:
			return false, err
		case <-tick.C:
		}
	}
	_ = p.Signal(syscall.SIGSTOP)
	for s := (child.Status{}); s.State != 'T'; s, _ = child.Stat(p.Pid) { // on a busy machine it is stopped later
		select {
		case err := <-ended:
			return false, err
		case <-tick.C:
		}
	}
	<-time.After(stoppedFor + 100*time.Millisecond)
	_ = p.Signal(syscall.SIGCONT)
	return true, <-ended
}

var eventTime = regexp.MustCompile(`"time":(\d+)`)

// reached reports whether the end of a history that is being written has an event of stopAfter or later.
func reached(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	const tail = 4096
	end, _ := f.Seek(0, io.SeekEnd)
	_, _ = f.Seek(max(0, end-tail), io.SeekStart)
	text, _ := io.ReadAll(f)
	for _, m := range eventTime.FindAllSubmatch(text, -1) {
		if ns, _ := strconv.ParseInt(string(m[1]), 10, 64); ns >= stopAfter.Nanoseconds() {
			return true
		}
	}
	return false
}
