package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// panicking is an output that panics.
type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("a defect") }

// TestDefectsAreNotInconclusive: neither a panic of the program nor an abort of the runtime has exit code 2.
func TestDefectsAreNotInconclusive(t *testing.T) {
	var stderr strings.Builder
	if code := run([]string{"list", "locks"}, streams{out: panicking{}, err: &stderr}); code != exitInternal ||
		!strings.Contains(stderr.String(), "internal error") ||
		!strings.Contains(stderr.String(), "a defect") {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, aborts)
	command.Dir = t.TempDir() // for a core file
	text, _ := command.CombinedOutput()
	status, _ := command.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGABRT || !strings.Contains(string(text), "a defect") {
		t.Errorf("it ended with %v\n%s", command.ProcessState, text)
	}
}
