package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/evaluation"
	"github.com/lockchaos/lockchaos/internal/evaluation/tally"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/reports/export"
)

// TestDiffOfRuns: the same seed leaves equal histories, another one names the first event that differs, and a run with
// a worse verdict ends with 1, in that order only.
func TestDiffOfRuns(t *testing.T) {
	race.Skip(t)
	run := func(scenario, seed string) string {
		out := t.TempDir()
		if code, _, stderr := chaos("run", "--scenario", scenario, "--backend", "sim", "--seed", seed, "--out", out,
			"--expect"); code != exitSafe {
			t.Fatalf("%s: exit code %d\n%s", scenario, code, stderr)
		}
		return filepath.Join(out, "latest")
	}
	safe, again, other := run("contention", "3"), run("contention", "3"), run("contention", "4")
	unsafe := run("gc-pause", "3")
	for _, tt := range []struct {
		name, a, b string
		want       int
		says       []string
	}{
		{"same seed", safe, again, exitSafe, []string{"equal, byte for byte", "Verdict and properties are the same."}},
		{"another seed", safe, other, exitSafe, []string{"| seed | 3 | 4 |", "differ first in line "}},
		{"worse", safe, unsafe, exitUnsafe, []string{"| verdict | safe | **unsafe** (worse) |", "`pause-client`"}},
		{"better", unsafe, safe, exitSafe, []string{"| verdict | unsafe | safe |"}},
	} {
		code, stdout, stderr := chaos("diff", tt.a, tt.b)
		if code != tt.want {
			t.Errorf("%s: exit code %d, want %d\n%s", tt.name, code, tt.want, stderr)
		}
		stdout = strings.NewReplacer("<code>", "`", "</code>", "`").Replace(stdout)
		for _, say := range tt.says {
			if !strings.Contains(stdout, say) {
				t.Errorf("%s: the text lacks %q:\n%s", tt.name, say, stdout)
			}
		}
	}
	var d export.RunDiff
	if _, stdout, _ := chaos("diff", safe, unsafe, "--json"); json.Unmarshal([]byte(stdout), &d) != nil || !d.Worse {
		t.Errorf("--json: %s", stdout)
	}
	for _, args := range [][]string{{"diff"}, {"diff", safe}, {"diff", safe, filepath.Join(safe, "no")}} {
		if code, _, _ := chaos(args...); code != exitUsage {
			t.Errorf("%v: exit code %d, want %d", args, code, exitUsage)
		}
	}
}

// TestDiffOfTests: a new finding of a lock ends with 1, its disappearance with 0.
func TestDiffOfTests(t *testing.T) {
	safe, unsafe := t.TempDir(), t.TempDir()
	r := evaluation.Report{Format: evaluation.Format}
	if err := r.Write(safe); err != nil {
		t.Fatal(err)
	}
	r.Findings = []evaluation.Finding{{Own: true, Cause: "stolen", Seen: []tally.Seen{{Scenario: "mixed", Runs: 1, Of: 1}}}}
	if err := r.Write(unsafe); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := chaos("diff", safe, filepath.Join(unsafe, evaluation.JSONFile), "--json")
	if code != exitUnsafe {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	validate(t, "diff-tests", []byte(stdout))
	if code, stdout, stderr = chaos("diff", unsafe, safe); code != exitSafe || !strings.Contains(stdout, "| gone |") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
