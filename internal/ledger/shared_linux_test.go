package ledger

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/child"
)

// TestSweepRemovesFaketime: files of libfaketime in /dev/shm for a dead process are removed, a live one's are not.
func TestSweepRemovesFaketime(t *testing.T) {
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
			path := filepath.Join(sharedMemory, fmt.Sprintf(name, pid))
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Skip("NOT RUN: ", err)
			}
			t.Cleanup(func() { _ = os.Remove(path) })
			all = append(all, path)
		}
		return all
	}
	left, ours := leave(dead), leave(os.Getpid())
	entries := []entry{
		{Identity: child.Identity{PID: dead, Started: 1}}, {Identity: child.Identity{PID: os.Getpid(), Started: 1}}, {Dir: "/x"},
	}
	for _, want := range [][]string{left, nil} {
		var swept Swept
		swept.kill(t.Context(), entries)
		if diff := cmp.Diff(want, swept.Removed); diff != "" {
			t.Errorf("removed (-want +got):\n%s", diff)
		}
	}
	for _, path := range ours {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}
