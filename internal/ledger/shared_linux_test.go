package ledger

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSharedMemoryOfTheDead: what a killed process has left in /dev/shm goes; that of one that lives stays.
func TestSharedMemoryOfTheDead(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dead := cmd.Process.Pid
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	leave := func(pid int) (all []string) {
		for _, name := range []string{"faketime_shm_%d", "sem.faketime_sem_%d"} {
			path := filepath.Join(shared, fmt.Sprintf(name, pid))
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Skip("NOT RUN: ", err)
			}
			t.Cleanup(func() { _ = os.Remove(path) })
			all = append(all, path)
		}
		return all
	}
	left, ours := leave(dead), leave(os.Getpid())
	if diff := cmp.Diff(left, sharedMemory(entry{PID: dead})); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if removed := sharedMemory(entry{PID: os.Getpid()}); removed != nil {
		t.Errorf("of a process that lives: %v", removed)
	}
	for _, path := range ours {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if removed := append(sharedMemory(entry{PID: dead}), sharedMemory(entry{Dir: "/x"})...); removed != nil {
		t.Errorf("again: %v", removed)
	}
}
