// Package examples has clients of the protocol in other languages, and the
// tests that run scenarios with them. There is no Go in it to import: read
// docs/protocol.md first, then client.py or client.mjs.
package examples

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/scenarios"
)

// perform runs gc-pause with the client of that command, and compares it with
// what it expects of itself.
func perform(t *testing.T, command string, set ...string) *history.History {
	t.Helper()
	for _, program := range []string{"redis-server", strings.Fields(command)[0]} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT RUN: needs %s on the PATH", program)
		}
	}
	s, err := scenarios.Load("gc-pause", append(set, "lock='exec:"+command+"'"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := runner.Run(context.Background(), runner.Options{
		Scenario: s, Seed: 1, Backend: runner.Backends()[0].New(runner.BackendOptions{}), Out: t.TempDir(),
		Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range checker.Unexpected(out.Judgement, out.Manifest.Expect) {
		t.Error(wrong)
	}
	h, err := history.ReadFile(out.Dir.File(rundir.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range h.Problems {
		t.Errorf("problem in the history: %+v", p)
	}
	for _, n := range h.Notices {
		if n.F == history.Crash {
			t.Errorf("process %d crashed at %v", n.Process, n.Time)
		}
	}
	if t.Failed() {
		t.Logf("%s: %s", out.Judgement.Verdict, out.Judgement.Sentence)
	}
	return h
}

// TestExamplesUnderAPause: a lock in any language that can be had from the
// articles ends as the scenario says: it keeps its promise, the holder that was
// stopped outlives its lease, and a write is lost.
func TestExamplesUnderAPause(t *testing.T) {
	for command, expect := range map[string]string{
		"python3 client.py": "expect.fencing=not-applicable", // it mints no tokens
		"node client.mjs":   "expect.fencing=holds",
	} {
		t.Run(command, func(t *testing.T) {
			h := perform(t, command, expect)
			promised := 0
			for _, s := range h.Spans {
				if s.Op != history.OpAcquire || s.Outcome != history.OK {
					continue
				}
				const lease = 1500 * time.Millisecond
				left := s.Valid - s.Return
				if left > lease+50*time.Millisecond {
					t.Errorf("event %d: promised for %v, longer than the lease of %v", s.Ended, left, lease)
				}
				if left > lease/2 { // a busy machine may take its share
					promised++
				}
			}
			if promised < 3 {
				t.Errorf("only %d grants for about a lease", promised)
			}
		})
	}
}

// TestExamplesOnAQuietDay: without faults nothing is wrong.
func TestExamplesOnAQuietDay(t *testing.T) {
	for _, command := range []string{"python3 client.py", "node client.mjs"} {
		t.Run(command, func(t *testing.T) {
			h := perform(t, command, "faults=[]", "duration=1500ms", "workload.hold=20ms",
				"expect={verdict: safe, damage: holds}")
			for _, s := range h.Spans {
				if s.Op == history.OpRelease && s.Outcome != history.OK {
					t.Errorf("release of event %d is %v", s.Invoked, s.Outcome)
				}
			}
		})
	}
}

// TestWatchdogOfTheNodeExample: without a lease the client renews by itself,
// and tells of it; stopped for longer than that, it tells that it lost.
func TestWatchdogOfTheNodeExample(t *testing.T) {
	h := perform(t, "node client.mjs", "options={lease_ms: 900}", "workload.lease=0s", "workload.hold=2500ms",
		"duration=4s", "faults=[{when: renewed, fault: pause-client, target: holder, for: 1500ms}]",
		"expect={exclusion: violated, lease-exclusion: holds}")
	renewed, lost := 0, 0
	for _, n := range h.Notices {
		switch n.F {
		case history.Renewed:
			renewed++
			if left := n.Valid - n.Time; left <= 0 || left > 950*time.Millisecond {
				t.Errorf("event %d: renewed for %v", n.Index, left)
			}
		case history.Lost:
			lost++
		}
	}
	if renewed < 2 || lost < 1 { // one that is stopped, and any that the machine did not let renew in time
		t.Errorf("%d renewals and %d losses told, want several and one", renewed, lost)
	}
}
