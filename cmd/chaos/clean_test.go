package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCleanThatFails: a failure is printed with --json too.
func TestCleanThatFails(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	open := filepath.Join(temp, fmt.Sprintf("lockchaos-%d", os.Getuid())) // world-writable: its ledgers are not trusted
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"clean"}, {"clean", "--json"}} {
		code, stdout, stderr := chaos(args...)
		if code == exitSafe || !strings.Contains(stderr, "TMPDIR") || strings.Contains(stdout, "nothing was left") {
			t.Errorf("chaos %v: exit code %d, want a failure\n%s%s", args, code, stdout, stderr)
		}
	}
}
