package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/cluster/wallclock"
)

// startWith starts a cluster with requirements.
func startWith(t *testing.T, topology cluster.Topology, e cluster.Requirements) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), Config{Topology: topology, Requirements: e, Dir: t.TempDir()})
	if errors.Is(err, cluster.ErrEnvironment) {
		t.Skip("NOT RUN: ", err)
	}
	must(t, err)
	t.Cleanup(func() {
		must(t, c.Close(t.Context()))
		if mounts, _ := os.ReadFile("/proc/mounts"); strings.Contains(string(mounts), c.data) {
			t.Errorf("something is still mounted in %s", c.data)
		}
	})
	return c
}

// TestClockJumps: a server expires keys by the clock that was set; the timeouts of
// its blocked clients, which use the monotonic clock, are not affected.
func TestClockJumps(t *testing.T) {
	c := startWith(t, single, cluster.Requirements{Clocks: true})
	a := dialFrom(t, c, 0, "n1")
	wantReply(t, a, "SET k v PX 20000", "OK")
	must(t, c.SetClock(t.Context(), "n1", cluster.Clock{Offset: 30 * time.Second}))
	wantReply(t, a, "GET k", nil)
	wantReply(t, a, "SET k v PX 20000", "OK")
	must(t, c.SetClock(t.Context(), "n1", cluster.Clock{Offset: -time.Minute}))
	if left, _ := do(t, a, "PTTL k").(int64); left < 95_000 || left > 111_000 {
		t.Errorf("%d ms are left after a jump back by 90 s, want about 110,000", left)
	}
	began := time.Now()
	wantReply(t, a, "BLPOP none 0.3", nil)
	if took := time.Since(began); took < 250*time.Millisecond {
		t.Errorf("BLPOP returned after %v, not after 300 ms", took)
	}
	must(t, c.SetClock(t.Context(), "n1", cluster.Clock{}))
	if left, _ := do(t, a, "PTTL k").(int64); left < 35_000 || left > 51_000 {
		t.Errorf("%d ms are left by the true clock, want about 50,000", left)
	}
}

// TestClockDrifts: with a clock that gains 99 seconds per second a lease of 100 seconds, for which nobody waits here,
// expires after one; a restart keeps the clock.
func TestClockDrifts(t *testing.T) {
	c := startWith(t, single, cluster.Requirements{Clocks: true})
	must(t, c.SetClock(t.Context(), "n1", cluster.Clock{Drift: 99}))
	a := dialFrom(t, c, 0, "n1")
	wantReply(t, a, "SET k v PX 100000", "OK")
	took := waitFor(t, "the key to expire", func() bool { return do(t, a, "GET k") == nil })
	if took < 500*time.Millisecond {
		t.Errorf("it expired after %v, not after one second", took)
	}
	must(t, c.Kill(t.Context(), "n1"))
	must(t, c.Restart(t.Context(), "n1"))
	s, err := c.server("n1")
	must(t, err)
	if ahead, err := s.clockOffset(t.Context()); err != nil || ahead < 50*time.Second {
		t.Errorf("after a restart its clock is %v ahead, %v", ahead, err)
	}
}

// TestPowerOff: fsynced writes survive, others are lost, though acknowledged.
func TestPowerOff(t *testing.T) {
	for policy, want := range map[string]any{"always": "v", "no": nil} {
		t.Run(policy, func(t *testing.T) {
			c := startWith(t, cluster.Topology{Kind: cluster.Single, Options: map[string]string{
				"appendonly": "yes", "appendfsync": policy}}, cluster.Requirements{Disks: true})
			wantReply(t, dialFrom(t, c, 0, "n1"), "SET k v", "OK")
			must(t, c.PowerOff(t.Context(), "n1"))
			must(t, c.Restart(t.Context(), "n1"))
			wantReply(t, dialFrom(t, c, 1, "n1"), "GET k", want)
		})
	}
}

// TestKillLosesNothing: writes that the operating system has survive a kill of the
// server; a wiped disk is empty.
func TestKillLosesNothing(t *testing.T) {
	c := startWith(t, cluster.Topology{Kind: cluster.Single, Options: map[string]string{
		"appendonly": "yes", "appendfsync": "no"}}, cluster.Requirements{Disks: true})
	wantReply(t, dialFrom(t, c, 0, "n1"), "SET k v", "OK")
	if err := c.Wipe(t.Context(), "n1"); err == nil {
		t.Error("the disk of a running server was wiped")
	}
	must(t, c.Kill(t.Context(), "n1"))
	must(t, c.Restart(t.Context(), "n1"))
	wantReply(t, dialFrom(t, c, 1, "n1"), "GET k", "v")
	must(t, c.Kill(t.Context(), "n1"))
	must(t, c.Wipe(t.Context(), "n1"))
	must(t, c.Restart(t.Context(), "n1"))
	wantReply(t, dialFrom(t, c, 2, "n1"), "GET k", nil)
}

// TestMissingRequirements: abilities that servers were not started with are errors.
func TestMissingRequirements(t *testing.T) {
	c := up(t, single)
	for what, err := range map[string]error{
		"clock": c.SetClock(t.Context(), "n1", cluster.Clock{Offset: time.Second}), "power": c.PowerOff(t.Context(), "n1"),
	} {
		if !errors.Is(err, cluster.ErrEnvironment) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"clock": c.SetClock(t.Context(), "n9", cluster.Clock{}), "power": c.PowerOff(t.Context(), "n9"),
		"disk": c.Wipe(t.Context(), "n9"),
	} {
		if !errors.Is(err, cluster.ErrNoNode) {
			t.Errorf("%s of no node: %v", what, err)
		}
	}
}

// TestDo: an operator's command, its reply, and an error reply.
func TestDo(t *testing.T) {
	c := up(t, single)
	if reply, err := c.Do(t.Context(), "n1", "SET", "k", 1); err != nil || reply != "OK" {
		t.Errorf("SET = %v, %v", reply, err)
	}
	if reply, err := c.Do(t.Context(), "n1", "INCR", "k"); err != nil || reply != int64(2) {
		t.Errorf("INCR = %v, %v", reply, err)
	}
	if reply, err := c.Do(t.Context(), "n1", "NONSENSE"); err == nil || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("NONSENSE = %v, %v", reply, err)
	}
	if _, err := c.Do(t.Context(), "n7", "PING"); !errors.Is(err, cluster.ErrNoNode) {
		t.Errorf("n7: %v", err)
	}
	must(t, c.Kill(t.Context(), "n1"))
	if _, err := c.Do(t.Context(), "n1", "PING"); !errors.Is(err, cluster.ErrDown) {
		t.Errorf("a killed node: %v", err)
	}
}

// onlyFaketime hides the compiler.
func onlyFaketime(t *testing.T) {
	t.Helper()
	path, err := exec.LookPath(Program)
	if err != nil {
		t.Skip("NOT RUN: ", err)
	}
	dir := t.TempDir()
	must(t, os.Symlink(path, filepath.Join(dir, Program)))
	t.Setenv("PATH", dir)
	if _, _, missing := wallclock.FindFaketime(); missing != "" {
		t.Skip("NOT RUN: ", missing)
	}
	if by, missing := wallclock.Method(); missing != "" || !strings.Contains(by, "libfaketime") {
		t.Fatalf("clocks are set by %q, %q is missing", by, missing)
	}
}

// TestClocksWithoutACompiler: libfaketime does the same, and leaves nothing behind.
func TestClocksWithoutACompiler(t *testing.T) {
	onlyFaketime(t)
	t.Run("jumps", TestClockJumps)
	t.Run("drifts", TestClockDrifts)
	c := startWith(t, single, cluster.Requirements{Clocks: true})
	s, err := c.server("n1")
	must(t, err)
	pid := s.pid
	if left := sharedMemoryOf(t, pid); len(left) == 0 {
		t.Error("libfaketime has nothing in /dev/shm: this test would find nothing")
	}
	must(t, c.Kill(t.Context(), "n1"))
	if left := sharedMemoryOf(t, pid); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func sharedMemoryOf(t *testing.T, pid int) []string {
	t.Helper()
	found, err := filepath.Glob(fmt.Sprintf("/dev/shm/*faketime*_%d", pid))
	must(t, err)
	return found
}

// TestSetClockWithLateReplies: a fast clock can be set even if the server replies late.
func TestSetClockWithLateReplies(t *testing.T) {
	c := startWith(t, single, cluster.Requirements{Clocks: true})
	done := make(chan error, 1)
	must(t, c.Pause(t.Context(), "n1"))
	s, err := c.server("n1")
	must(t, err)
	s.paused.Store(false) // so that it gets commands although it is stopped
	go func() { done <- c.SetClock(t.Context(), "n1", cluster.Clock{Drift: 9}) }()
	<-time.After(300 * time.Millisecond) // 2.7 s of that clock
	must(t, s.proc.Load().Continue())
	must(t, <-done)
}

// TestMissingClocksNamesBothMethods: where there is neither, the text has both.
func TestMissingClocksNamesBothMethods(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, missing := wallclock.Method()
	if _, _, none := wallclock.FindFaketime(); none == "" {
		if missing != "" {
			t.Errorf("libfaketime is installed, yet missing: %s", missing)
		}
		return
	}
	if !strings.Contains(missing, "gcc") || !strings.Contains(missing, "libfaketime") {
		t.Errorf("the text does not say how to install either: %q", missing)
	}
}
