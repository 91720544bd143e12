//go:build unix

package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/child"
)

// TestMain is the run that is killed: it opens a ledger, starts two children that
// outlive it, creates a directory, and waits.
func TestMain(m *testing.M) {
	if os.Getenv("LEDGER_ROLE") == "run" {
		if err := run(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		select {}
	}
	os.Exit(m.Run())
}

func run() error {
	l, err := Open("killed")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "left-behind-")
	if err != nil {
		return err
	}
	if err := errors.Join(l.Dir(dir), os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600)); err != nil {
		return err
	}
	var pids []any
	for range 2 {
		p, err := child.Start(child.Spec{Path: "sleep", Args: []string{"600"}, Orphan: true})
		if err != nil {
			return err
		}
		if err := l.Process(p.PID()); err != nil {
			return err
		}
		pids = append(pids, p.PID())
	}
	_, err = fmt.Println(append(pids, dir)...)
	return err
}

// killedRun is a run that has left two processes and a directory behind.
func killedRun(t *testing.T) (pids []int, dir string, kill func()) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := child.Start(child.Spec{Path: path, Env: append(os.Environ(), "LEDGER_ROLE=run"), Pipes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	pids = make([]int, 2)
	if _, err := fmt.Fscan(p.Stdout(), &pids[0], &pids[1], &dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return pids, dir, func() {
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSweepEndsWhatAKilledRunLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	pids, dir, kill := killedRun(t)

	before, err := Sweep(t.Context(), nil)
	if err != nil || len(before.Swept) != 0 || len(before.Running) != 1 {
		t.Fatalf("sweep beside a running run = %+v, %v, want it left alone", before, err)
	}
	kill()
	// Not before the kill: the kernel sends SIGHUP to a stopped group whose parent exits (setpgid(2), "orphaned").
	if err := syscall.Kill(pids[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if _, err := child.Stat(pid); err != nil {
			t.Fatalf("process %d should have outlived its run: %v", pid, err)
		}
	}

	after, err := Sweep(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Report{Swept: []Swept{{Run: before.Running[0], Killed: pids, Removed: []string{dir}}}}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("sweep (-want +got):\n%s", diff)
	}
	for _, pid := range pids {
		if s, err := child.Stat(pid); err == nil && s.Alive() {
			t.Errorf("process %d is still running, state %c", pid, s.State)
		}
	}
	again, err := Sweep(t.Context(), nil)
	if diff := cmp.Diff(Report{}, again); err != nil || diff != "" {
		t.Errorf("second sweep: %v\n%s", err, diff)
	}
	expectEmpty(t)
}

func TestConcurrentSweepsKillOnce(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	pids, _, kill := killedRun(t)
	kill()
	reports := make([]Report, 8)
	var all sync.WaitGroup
	for i := range reports {
		all.Go(func() {
			var err error
			if reports[i], err = Sweep(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var killed []int
	for _, r := range reports {
		for _, s := range r.Swept {
			killed = append(killed, s.Killed...)
		}
	}
	if diff := cmp.Diff(pids, killed); diff != "" {
		t.Errorf("killed by all sweeps together (-want +got):\n%s", diff)
	}
	expectEmpty(t)
}

// TestSweepKillsOnlyItsOwn: a ledger that does not match a process or directory of its run removes nothing.
func TestSweepKillsOnlyItsOwn(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	bystander, err := child.Start(child.Spec{Path: "sleep", Args: []string{"600"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bystander.Kill() })
	id, err := child.Identify(bystander.PID())
	if err != nil {
		t.Fatal(err)
	}
	foreign := t.TempDir() // below another temporary directory than this test's
	pid, started := id.PID, id.Started
	for name, lines := range map[string]string{
		"number-reused": fmt.Sprintf("{\"boot\":%q}\n{\"pid\":%d,\"started\":%d}\n", bootID(), pid, started-1),
		"other-boot":    fmt.Sprintf("{\"boot\":\"before\"}\n{\"pid\":%d,\"started\":%d}\n", pid, started),
		"no-first-line": fmt.Sprintf("{\"pid\":%d,\"started\":%d}\n", pid, started),
		"foreign-dir":   fmt.Sprintf("{\"boot\":%q}\n{\"dir\":%q}\n", bootID(), foreign),
		"torn":          fmt.Sprintf("{\"boot\":%q}\n{\"pid\":%d,\"star", bootID(), pid),
	} {
		writeLedger(t, name+suffix, lines)
	}
	report, err := Sweep(t.Context(), nil)
	if err != nil || len(report.Swept) != 5 {
		t.Fatalf("sweep = %+v, %v, want five dead runs", report, err)
	}
	for _, s := range report.Swept {
		if len(s.Killed)+len(s.Removed)+len(s.Failed) > 0 {
			t.Errorf("%s: %+v, want nothing touched", s.Run, s)
		}
	}
	if !id.Alive() {
		t.Error("the bystander was killed")
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("the foreign directory was removed: %v", err)
	}
	expectEmpty(t)
}

func TestLedger(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, name := range []string{"", "../x", "a/b", ".hidden", "a b"} {
		if l, err := Open(name); err == nil {
			t.Errorf("Open(%q) was accepted: %s", name, l.Path())
		}
	}
	a, errA := Open("same")
	b, errB := Open("same")
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	if a.Path() == b.Path() {
		t.Errorf("two ledgers share %s", a.Path())
	}
	for _, path := range []string{"/", "/etc", "relative", os.TempDir(), os.TempDir() + "/../x", os.TempDir() + "x"} {
		if err := a.Dir(path); err == nil {
			t.Errorf("Dir(%q) was accepted", path)
		}
	}
	if err := errors.Join(a.Close(), a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	if err := a.Process(os.Getpid()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Process after Close = %v, want os.ErrClosed", err)
	}
	var none *Ledger
	if err := errors.Join(none.Process(1), none.Dir("/"), none.Close()); err != nil {
		t.Errorf("a nil ledger: %v", err)
	}
	expectEmpty(t)
}

func TestSharedDirectoryIsRefused(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	makeRoot(t)
	if err := os.Chmod(Root(), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("x"); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("Open in a world-writable directory = %v, want an error that says what to do", err)
	}
	if _, err := Sweep(t.Context(), nil); err == nil {
		t.Error("Sweep trusted a world-writable directory")
	}
}

func TestSweepEndsWithItsContext(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	l, err := Open("alive")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	cancel()
	if _, err := Sweep(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Sweep = %v, want context.Canceled", err)
	}
}

func expectEmpty(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
}

func makeRoot(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(Root(), 0o700); err != nil {
		t.Fatal(err)
	}
}

func writeLedger(t *testing.T, base, lines string) {
	t.Helper()
	makeRoot(t)
	if err := os.WriteFile(filepath.Join(Root(), base), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSweepFindsGrandchildren: a process that a client has started is not in the
// ledger, but has inherited the run's mark.
func TestSweepFindsGrandchildren(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("NOT RUN: needs /proc to read the environment of processes")
	}
	t.Setenv("TMPDIR", t.TempDir())
	l, err := Open("grand")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	cmd.Env = append(os.Environ(), l.Mark())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if _, err := Sweep(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
		t.Fatal("a sweep killed a process of a live run")
	default:
	}
	l.mu.Lock()
	_ = l.file.Close() // as when the run is killed: the lock is released, the file stays
	l.mu.Unlock()
	report, err := Sweep(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Swept) != 1 || len(report.Swept[0].Killed) != 1 || report.Swept[0].Killed[0] != cmd.Process.Pid {
		t.Errorf("swept %+v, want process %d", report.Swept, cmd.Process.Pid)
	}
	<-ended
}

// TestNetworkNames: only names of our own form can be recorded, because a sweep removes the namespaces that it reads.
func TestNetworkNames(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	l, err := Open("run")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, want := range map[string]bool{
		"lc01234567": true, "lc01234567n1": true, "lc89abcdefs15": true, "eth0": false, "": false, "../x": false,
		"lc01234567x1": false, "lc0123456": false, "lc01234567n1; reboot": false, "docker0": false,
	} {
		for what, err := range map[string]error{"namespace": l.Namespace(name), "bridge": l.Bridge(name)} {
			if (err == nil) != want {
				t.Errorf("%s %q: %v", what, name, err)
			}
		}
	}
}
