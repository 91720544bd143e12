package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestEndlessScenario: a scenario file without an end is refused after the first bytes too many.
func TestEndlessScenario(t *testing.T) {
	endless := filepath.Join(t.TempDir(), "endless.yaml")
	if err := syscall.Mkfifo(endless, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		w, err := os.OpenFile(endless, os.O_WRONLY, 0)
		for line := bytes.Repeat([]byte("# more\n"), 100); err == nil; {
			_, err = w.Write(line) // until the reader closes the pipe
		}
	}()
	for _, test := range []struct{ path, want string }{
		{"/dev/zero", "/dev/zero is neither a regular file nor a pipe"},
		{t.TempDir() + "/", "is neither a regular file nor a pipe"},
		{endless, "endless.yaml has more than 32768 bytes, the limit"},
	} {
		code, _, stderr := chaos("run", "--scenario", test.path, "--out", t.TempDir())
		if code != exitUsage || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit code %d, want %d\n%s", test.path, code, exitUsage, stderr)
		}
	}
}

// TestSignalBeforeTheStart: a signal ends a command that is still reading its scenario.
func TestSignalBeforeTheStart(t *testing.T) {
	silent := filepath.Join(t.TempDir(), "silent.yaml")
	if err := syscall.Mkfifo(silent, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"run", "explore"} {
		cmd := exec.Command(os.Args[0], command, "--scenario", silent, "--out", t.TempDir())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w, err := os.OpenFile(silent, os.O_WRONLY, 0) // returns when the command has opened the pipe
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
			t.Errorf("%s: %v, want the end by SIGTERM", command, cmd.ProcessState)
		}
		w.Close()
	}
}
