package child

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func needProc(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("NOT RUN: needs /proc")
	}
}

// until waits until something is so.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(signalWait); !is(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not in %v: %s", signalWait, what)
		}
	}
}

// TestHalted: a process that is stopped is seen, whether it is the leader of its family or the child of a script.
func TestHalted(t *testing.T) {
	needProc(t)
	alone := start(t, Spec{Path: "sleep", Args: []string{"600"}})
	parent := start(t, self(t, "parent"))
	var child int
	if _, err := fmt.Fscan(parent.Stdout(), &child); err != nil {
		t.Fatal(err)
	}
	var h Halts
	h.Find([]int{alone.PID(), parent.PID()})
	for _, p := range []*Process{alone, parent} {
		if why := h.Halted(p.PID()); why != "" {
			t.Errorf("process %d is running, and %s", p.PID(), why)
		}
	}
	if err := alone.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	until(t, "the child of a child is stopped", func() bool { s, _ := Stat(child); return s.State == 'T' })
	for _, p := range []*Process{alone, parent} {
		if why := h.Halted(p.PID()); why != "stopped by a signal" {
			t.Errorf("process %d: %q, want that it is stopped", p.PID(), why)
		}
	}
	if err := alone.Continue(); err != nil {
		t.Fatal(err)
	}
	if why := h.Halted(alone.PID()); why != "" {
		t.Errorf("process %d runs again, and %s", alone.PID(), why)
	}
	h.Find([]int{1 << 30})
	if why := h.Halted(1 << 30); why != "" {
		t.Errorf("a process that does not exist: %q", why)
	}
}

// TestFrozen: a process in a frozen control group is halted; needs the right to create one.
func TestFrozen(t *testing.T) {
	needProc(t)
	for _, kind := range []struct{ root, file, freeze, thaw string }{
		{"/sys/fs/cgroup", "cgroup.freeze", "1", "0"}, {"/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"},
		{"/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"},
	} {
		t.Run(kind.root, func(t *testing.T) {
			group := filepath.Join(kind.root, "lockchaos-test-"+strconv.Itoa(os.Getpid()))
			if err := os.Mkdir(group, 0o755); err != nil {
				t.Skipf("NOT RUN: %v", err)
			}
			if _, err := os.Stat(filepath.Join(group, kind.file)); err != nil { // another file system is mounted there
				_ = os.Remove(group)
				t.Skipf("NOT RUN: %v", err)
			}
			p := start(t, Spec{Path: "sleep", Args: []string{"600"}})
			write := func(file, text string) error {
				return os.WriteFile(filepath.Join(group, file), []byte(text), 0)
			}
			t.Cleanup(func() {
				_ = write(kind.file, kind.thaw)
				_ = p.Kill()
				_ = os.Remove(group)
			})
			if err := write("cgroup.procs", strconv.Itoa(p.PID())); err != nil {
				t.Skipf("NOT RUN: %v", err)
			}
			if err := write(kind.file, kind.freeze); err != nil {
				t.Skipf("NOT RUN: %v", err)
			}
			var h Halts
			h.Find([]int{p.PID()})
			until(t, "the process is seen as frozen", func() bool {
				return h.Halted(p.PID()) == "frozen with its control group"
			})
			if err := write(kind.file, kind.thaw); err != nil {
				t.Fatal(err)
			}
			until(t, "the process runs again", func() bool { return h.Halted(p.PID()) == "" })
		})
	}
}

// TestWaited: the first reading is the beginning, and the kernel counts the waits of each thread.
func TestWaited(t *testing.T) {
	needProc(t)
	if len(waits(os.Getpid())) == 0 {
		t.Skip("NOT RUN: the kernel does not count how long threads wait for a processor")
	}
	var h Halts
	h.Find([]int{os.Getpid()})
	if waited := h.Waited(os.Getpid()); waited != 0 {
		t.Errorf("the first reading is %v, want 0", waited)
	}
	before := waits(os.Getpid())
	for thread := range h.waited {
		h.waited[thread] -= 3e9
	}
	if waited := h.Waited(os.Getpid()); waited < 3e9 {
		t.Errorf("a thread that waited for 3 s: %v", waited)
	}
	for thread, total := range before {
		if total < 0 || h.waited[thread] != 0 && h.waited[thread] < total {
			t.Errorf("thread %d waited for %v, and then for %v", thread, total, h.waited[thread])
		}
	}
}
