package main

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster/process"
	"github.com/lockchaos/lockchaos/internal/cluster/wallclock"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/testkit/rerun"
)

// equippedScenario has servers with fake clocks and FUSE disks, as far as this machine supports them, and paused
// clients and servers: everything that a run can leave behind.
func equippedScenario(t *testing.T) string {
	t.Helper()
	faults := "  - {when: acquired, fault: pause-client, target: holder}\n  - {fault: pause-node, target: n3}\n"
	if wallclock.Missing() == "" {
		faults += "  - {fault: clock-jump, target: n2, amount: 5s}\n"
	}
	if why := process.MissingDisks(); why == "" {
		faults += "  - {fault: power-loss, target: n1, for: 1m}\n"
	} else {
		t.Log("NOT TESTED: mounted disks: ", why)
	}
	return writeScenario(t, "name: equipped\n"+
		"topology: {kind: quorum, masters: 3, options: {appendonly: \"yes\"}}\nlock: redlock\n"+
		"workload: {clients: 3, hold: 50ms, lease: 1s}\nfaults:\n"+faults+"duration: 2s\n")
}

// runLimit is much longer than a run of equippedScenario takes, also on a busy machine.
const runLimit = 5 * time.Minute

// TestNothingIsLeftBehind: in every phase, Ctrl-C leaves the run directory and nothing else (no process, mount or
// temporary file), and so does kill -9 followed by chaos clean.
func TestNothingIsLeftBehind(t *testing.T) {
	needRedis(t)
	scenario := equippedScenario(t)
	for _, phase := range []string{"starting servers", "running the workload", "healing faults"} {
		for name, signal := range map[string]syscall.Signal{"Ctrl-C": syscall.SIGINT, "kill -9": syscall.SIGKILL} {
			t.Run(phase+"/"+name, func(t *testing.T) {
				t.Parallel()
				temp := endedBy(t, signal, phase, scenario)
				if signal == syscall.SIGKILL {
					clean, _ := program(t, "clean")
					clean.Env = append(clean.Env, "TMPDIR="+temp)
					if output, err := clean.CombinedOutput(); err != nil {
						t.Errorf("clean: %v\n%s", err, output)
					}
				}
				nothingIn(t, temp)
				nothingOf(t, temp)
			})
		}
	}
}

// endedBy runs a scenario, sends the signal in that phase, and returns the run's temporary directory. A run that was
// complete before the signal arrived, as its manifest says, is repeated.
func endedBy(t *testing.T, signal syscall.Signal, phase, scenario string) (temp string) {
	t.Helper()
	for try := 1; ; try++ {
		out := t.TempDir()
		cmd, temp := program(t, "run", "--scenario", scenario, "--backend", "process", "--out", out)
		when(t, cmd, runLimit, phase, func() { _ = cmd.Process.Signal(signal) })
		if signal == syscall.SIGKILL || cmd.ProcessState.ExitCode() == exitInterrupted {
			return temp
		}
		dir, err := rundir.Open(filepath.Join(out, rundir.Latest))
		if err != nil {
			t.Fatal(err)
		}
		m, err := dir.ReadManifest()
		if err != nil || m.State != rundir.Complete || !rerun.Because(t, try, "it was complete before the signal arrived") {
			t.Fatalf("exited with %v in state %q, want exit code %d: %v", cmd.ProcessState, m.State, exitInterrupted, err)
		}
	}
}

// nothingOf fails if a process with that temporary directory still exists, or something is mounted in it. (The shared
// memory of libfaketime is tested in packages process and ledger.)
func nothingOf(t *testing.T, temp string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil || bytes.Contains(mounts, []byte(temp)) {
		t.Errorf("%v, still mounted:\n%s", err, mounts)
	}
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		environ, err := os.ReadFile(path) // empty for a zombie
		if err == nil && bytes.Contains(environ, []byte("TMPDIR="+temp)) {
			t.Errorf("left behind: process %s", filepath.Base(filepath.Dir(path)))
		}
	}
}
