package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/testkit/rerun"
)

// realRun executes chaos run on real servers until it ends with exit code want and has printed says. Package rerun
// limits the number of attempts. dir is the run directory.
func realRun(t *testing.T, want int, says string, args ...string) (stdout, dir string) {
	t.Helper()
	for try := 1; ; try++ {
		out := t.TempDir()
		code, stdout, stderr := chaos(append([]string{"run", "--out", out}, args...)...)
		dir := filepath.Join(out, rundir.Latest)
		switch {
		case code == want && strings.Contains(stdout+stderr, says):
			return stdout, dir
		case !rerun.Again(t, try, dir):
			t.Fatalf("exit code %d, want %d and %q\n%s%s", code, want, says, stdout, stderr)
		}
	}
}
