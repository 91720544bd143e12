// Package examples has clients of the protocol in other languages and the tests that run scenarios with
// them. Read docs/reference/protocol.md first, then client.py or client.mjs.
package examples

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/backend"
	"github.com/lockchaos/lockchaos/internal/backend/servers"
	"github.com/lockchaos/lockchaos/internal/expect"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/runner"
	"github.com/lockchaos/lockchaos/internal/testkit/rerun"
	"github.com/lockchaos/lockchaos/scenarios"
)

// perform runs gc-pause with the client of that command, and checks the scenario's expectations.
func perform(t *testing.T, command string, set ...string) *history.History {
	t.Helper()
	return performUntil(t, "", command, set...)
}

// performUntil is perform, and interrupts the run when its history matches that expression; empty: never.
func performUntil(t *testing.T, seen, command string, set ...string) *history.History {
	t.Helper()
	for _, program := range []string{"redis-server", strings.Fields(command)[0]} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT RUN: needs %s on the PATH", program)
		}
	}
	s, err := scenarios.Load("gc-pause", scenarios.Sets(append(set, "lock='exec:"+command+"'"))...)
	if err != nil {
		t.Fatal(err)
	}
	s.InitTimeout = 5 * time.Minute // a program takes long to start on a busy machine
	out := runSettled(t, s, seen)
	for _, wrong := range unexpected(out) {
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

// runSettled is runUntil, repeated if the run is not as expected and its record has the reason: see package rerun.
func runSettled(t *testing.T, s scenarios.Scenario, seen string) *runner.Outcome {
	t.Helper()
	out := runUntil(t, s, seen)
	for try := 1; len(unexpected(out)) > 0 && rerun.Again(t, try, out.Dir.Path); try++ {
		out = runUntil(t, s, seen)
	}
	return out
}

// runUntil runs a scenario, and interrupts the run when its history matches an expression; empty: never.
func runUntil(t *testing.T, s scenarios.Scenario, seen string) *runner.Outcome {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := runner.Options{Scenario: s, Seed: 1, Backend: servers.Process().New(backend.Options{}), Out: t.TempDir(),
		Version: "test"}
	expression := regexp.MustCompile(seen)
	o.Watch = func(runner.Status) {
		text, err := os.ReadFile(filepath.Join(o.Out, rundir.Latest, rundir.HistoryFile))
		if err == nil && seen != "" && expression.Match(text) {
			cancel()
		}
	}
	out, err := runner.Run(ctx, o)
	if err != nil && !(seen != "" && errors.Is(err, runner.ErrInterrupted)) {
		t.Fatal(err)
	}
	return out
}

func unexpected(out *runner.Outcome) []string {
	return expect.Unexpected(out.Judgement, out.Manifest.Expect)
}

// TestExamplesWithPause: the scenario ends as expected for a lock in any language: the lock is correct, but a paused
// holder outlives its lease, and a write is lost.
func TestExamplesWithPause(t *testing.T) {
	for _, command := range []string{"python3 client.py", "node client.mjs"} {
		t.Run(command, func(t *testing.T) {
			h := perform(t, command)
			valid := 0
			for _, s := range h.Spans {
				if s.Op != history.OpAcquire || s.Outcome != history.OK {
					continue
				}
				const lease = 1500 * time.Millisecond
				left := s.Valid - s.Return
				if left > lease+50*time.Millisecond {
					t.Errorf("event %d: validity %v, longer than the lease of %v", s.Ended, left, lease)
				}
				if left > lease/2 { // a busy machine takes some
					valid++
				}
			}
			if valid < 3 {
				t.Errorf("only %d grants with a validity of about a lease", valid)
			}
		})
	}
}

// TestExamplesWithoutFaults: every release succeeds and the verdict is safe.
func TestExamplesWithoutFaults(t *testing.T) {
	for _, command := range []string{"python3 client.py", "node client.mjs"} {
		t.Run(command, func(t *testing.T) {
			h := perform(t, command, "faults=[]", "duration=1500ms", "workload.hold=20ms",
				"workload.lease=20s", "expect=safe")
			for _, s := range h.Spans {
				if s.Op == history.OpRelease && s.Outcome != history.OK {
					t.Errorf("release of event %d is %v", s.Invoked, s.Outcome)
				}
			}
		})
	}
}

// TestWatchdogOfTheNodeExample: without a lease the client renews the lock and reports it; after a pause longer
// than its lease it reports the loss.
func TestWatchdogOfTheNodeExample(t *testing.T) {
	h := performUntil(t, `(?s)"f":"renewed".*"f":"lost"`, "node client.mjs", "options={lease_ms: 900}", "workload.lease=0s",
		"workload.hold=2500ms", "duration=5m", "expect=null",
		"faults=[{when: renewed, fault: pause-client, target: holder, for: 1500ms}]")
	renewed, whole, lost := 0, 0, 0
	for _, n := range h.Notices {
		switch n.F {
		case history.Renewed:
			renewed++
			left := n.Valid - n.Time
			if n.Valid == 0 || left > 950*time.Millisecond { // less if it was recorded late
				t.Errorf("event %d: renewed for %v", n.Index, left)
			}
			if left > 450*time.Millisecond {
				whole++
			}
		case history.Lost:
			lost++
		}
	}
	if whole < 1 || lost < 1 { // the pause begins with a renewal
		t.Errorf("%d renewals, %d of them for more than half of the lease, and %d losses reported, want both", renewed, whole,
			lost)
	}
}
