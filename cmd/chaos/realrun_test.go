package main

import (
	"path/filepath"
	"testing"

	"github.com/lockchaos/lockchaos/internal/realrun"
	"github.com/lockchaos/lockchaos/internal/rundir"
)

// realRun runs chaos run on real servers until the exit code is the one wanted; package realrun says how often. The run
// is at dir.
func realRun(t *testing.T, want int, args ...string) (stdout, stderr, dir string) {
	t.Helper()
	for try := 1; ; try++ {
		out := t.TempDir()
		code, stdout, stderr := chaos(append([]string{"run", "--out", out}, args...)...)
		dir := filepath.Join(out, rundir.Latest)
		switch {
		case code == want:
			return stdout, stderr, dir
		case !realrun.Again(t, try, dir):
			t.Fatalf("exit code %d, want %d\n%s%s", code, want, stdout, stderr)
		}
	}
}
