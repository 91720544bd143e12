package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// limited runs the program under a limit of a shell.
func limited(t *testing.T, limit string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	c := exec.Command("sh", append([]string{"-c", "ulimit " + limit + ` && exec "$0" "$@"`, os.Args[0]}, args...)...)
	var out, err strings.Builder
	c.Stdout, c.Stderr = &out, &err
	_ = c.Run() // the exit code says more
	return c.ProcessState.ExitCode(), out.String(), err.String()
}

// TestFullDisk: a run whose files cannot be written says so once, names them and no report, and does not say that it
// was killed or is in progress. It ends as soon as its history cannot be written.
func TestFullDisk(t *testing.T) {
	early := regexp.MustCompile(`\n +0\.\ds  judging the history`)
	for _, blocks := range []int{8, 32, 200} { // of 512 bytes: run.json; a part of the history; all but report.html
		out := t.TempDir()
		code, stdout, stderr := limited(t, fmt.Sprintf("-f %d", blocks), "run", "--scenario", "contention", "--backend",
			"sim", "--seed", "1", "--duration", "30s", "--out", out)
		const full = "chaos: the limit on the size of files is too small (file too large): not written, or not complete"
		if code != exitEnvironment || strings.Count(stderr, "chaos: ") != 1 || !strings.Contains(stderr, full) {
			t.Errorf("%d blocks: exit code %d\n%s%s", blocks, code, stdout, stderr)
		}
		_, missing := os.Stat(filepath.Join(out, "latest", "report.html"))
		if reported := strings.Contains(stdout, "  report "); reported != (missing == nil) {
			t.Errorf("%d blocks: a path of a report: %v, the report: %v", blocks, reported, missing)
		}
		for _, wrong := range []string{"killed", "in progress", "still running"} {
			if strings.Contains(stdout+stderr, wrong) {
				t.Errorf("%d blocks: %q\n%s%s", blocks, wrong, stdout, stderr)
			}
		}
		if blocks == 32 && (!strings.HasPrefix(stdout, "INCONCLUSIVE") || !early.MatchString(stderr)) {
			t.Errorf("%d blocks: the run did not end early\n%s%s", blocks, stdout, stderr)
		}
	}
}

// TestLittleMemory: too small a limit on the address space is a matter of the environment, and no abort or exit code 2.
// A run with a process for each client needs more than other commands.
func TestLittleMemory(t *testing.T) {
	race.Skip(t)
	code, stdout, stderr := limited(t, "-v 2090000", "list", "faults")
	if code != exitEnvironment || stdout != "" || !strings.Contains(stderr, "chaos needs 2097152 KB (ulimit -v)") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	needRedis(t)
	out := t.TempDir()
	code, stdout, stderr = limited(t, "-v 2200000", "run", "--scenario", "contention", "--backend", "process",
		"--clients", "100", "--out", out)
	const less = "the limit is 2200000 KB: raise it (ulimit -v "
	if code != exitEnvironment || !strings.HasPrefix(stdout, "NOT RUN") || !strings.Contains(stderr, less) {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
