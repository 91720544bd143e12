package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// TestThresholdsChangeTheExitCode: a threshold that is not met does not change the verdict, but a safe run that ends
// with 0 otherwise ends with 3; in an unsafe run the verdict decides.
func TestThresholdsChangeTheExitCode(t *testing.T) {
	race.Skip(t)
	limits := func(limit string) []string { return []string{"--set", `thresholds=["acquire.count ` + limit + `"]`} }
	for _, tt := range []struct {
		scenario, limit string
		expect          bool
		want            int
	}{
		{"contention", ">= 1", false, exitSafe}, {"contention", "< 1", false, exitThreshold},
		{"contention", "< 1", true, exitThreshold}, {"plain-del", "< 1", false, exitUnsafe},
		{"plain-del", "< 1", true, exitThreshold},
	} {
		out := t.TempDir()
		args := append([]string{"run", "--scenario", tt.scenario, "--backend", "sim", "--seed", "7", "--out", out,
			fmt.Sprintf("--expect=%v", tt.expect)}, limits(tt.limit)...)
		code, stdout, stderr := chaos(args...)
		if code != tt.want {
			t.Errorf("%s, %s, expect %v: exit code %d, want %d\n%s", tt.scenario, tt.limit, tt.expect, code, tt.want, stderr)
		}
		if not := strings.Contains(stdout, ", not < 1"); not != (tt.limit == "< 1") {
			t.Errorf("%s, %s: the text says that it is not met: %v\n%s", tt.scenario, tt.limit, not, stdout)
		}
		if again, _, _ := chaos("check", filepath.Join(out, "latest")); !tt.expect && again != tt.want {
			t.Errorf("%s, %s: chaos check ends with %d, want %d", tt.scenario, tt.limit, again, tt.want)
		}
	}
}
