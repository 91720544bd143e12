package main

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/cluster"
	"github.com/lockchaos/lockchaos/internal/lab/disturbed"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/internal/testkit/rerun"
)

// stoppedFor is longer than the slack of the checkers and than most leases.
const stoppedFor = 3 * time.Second

// TestStoppedHarness: SIGSTOP of the harness, as Ctrl-Z has it, convicts no lock.
func TestStoppedHarness(t *testing.T) {
	race.SkipLong(t, "it runs eleven scenarios on real servers")
	for _, scenario := range []string{
		"contention", "stuck-holder", "swarm-single", "failover-wait-all", "redlock-contention", "watchdog-dead-client",
		"wait-starved", "min-replicas", "permits-dead-client", "reply-lost-release", "message-lost",
	} {
		testStopped(t, scenario, disturbed.Disturbance{Victim: disturbed.Harness, For: stoppedFor}, history.HarnessStalled)
	}
}

// TestStoppedClient: SIGSTOP of a client that no fault of the run has sent convicts no lock.
func TestStoppedClient(t *testing.T) {
	race.SkipLong(t, "it runs five scenarios on real servers")
	for _, scenario := range []string{
		"contention", "mixed", "mixed-permits", "redlock-contention", "crowded-process",
	} {
		testStopped(t, scenario, disturbed.Disturbance{Victim: disturbed.Client, For: stoppedFor}, history.ClientStalled)
	}
}

// testStopped runs a scenario with a disturbance: it is not unsafe, and its history has a note of the stall.
func testStopped(t *testing.T, scenario string, d disturbed.Disturbance, note string) {
	t.Run(scenario, func(t *testing.T) {
		needRedis(t)
		t.Parallel()
		r := runDisturbed(t, scenario, d)
		for try := 1; r.Stopped == 0 && rerun.Because(t, try, "it ended before it was stopped"); try++ {
			r = runDisturbed(t, scenario, d)
		}
		if r.Judgement.Verdict == checker.Unsafe {
			t.Errorf("%s: %s", r.Dir.Path, r.Judgement.Sentence)
		}
		h, err := history.ReadFile(r.Dir.File(rundir.HistoryFile))
		if err != nil {
			t.Fatal(err)
		}
		noted := func(f history.Fault) bool {
			_, client := cluster.ClientNumber(f.Target)
			return f.Stalled() && f.Name == note && f.Lasted >= stoppedFor && client == (note == history.ClientStalled)
		}
		if !slices.ContainsFunc(h.Faults, noted) {
			t.Errorf("the history has no %s of %v or more", note, stoppedFor)
		}
	})
}

func runDisturbed(t *testing.T, scenario string, d disturbed.Disturbance) *disturbed.Result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := d.Disturb(t.Context(), disturbed.Run{Program: []string{self}, Env: os.Environ(),
		Scenario: scenario, Seed: 1, Out: t.TempDir()})
	if errors.Is(err, disturbed.ErrNotRun) {
		t.Skip("NOT RUN:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}
