//go:build unix

package ledger

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/child"
)

// TestSweepsBesideRuns: each of them may create or remove the directory of ledgers while another uses it.
func TestSweepsBesideRuns(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if report, err := Sweep(t.Context(), nil); err != nil || len(report.Swept) > 0 {
					t.Errorf("sweep: %v, %v", report, err)
				}
			}
		})
		all.Go(func() {
			for range 100 {
				l, err := Open("run")
				if err != nil {
					t.Error(err)
					continue
				}
				if _, err := os.Stat(l.Path()); err != nil {
					t.Errorf("a sweep has removed the ledger of a live run: %v", err)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	expectEmpty(t)
}

// TestUnreadableLedger: it is reported, and the other runs are swept.
func TestUnreadableLedger(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	left := filepath.Join(dir, "left")
	if err := os.MkdirAll(filepath.Join(Root(), "a"+suffix), 0o700); err != nil { // a directory cannot be opened for writing
		t.Fatal(err)
	}
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	writeLedger(t, "b"+suffix, fmt.Sprintf("{\"boot\":%q}\n{\"dir\":%q}\n", bootID(), left))
	report, err := Sweep(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "a"+suffix) {
		t.Errorf("sweep = %v, want an error about the ledger of a", err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of b is still there: %v", err)
	}
	text := report.String()
	if !strings.Contains(text, "b: killed 0 processes, removed 1 directory\n") || !strings.Contains(text, "  failed: open ") {
		t.Errorf("report:\n%s", text)
	}
}

// TestUnfinishedLedger: a ledger whose program was killed before its first line is removed without a word.
func TestUnfinishedLedger(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, base := range []string{"empty" + suffix, newPrefix + "123"} {
		writeLedger(t, base, "")
	}
	if report, err := Sweep(t.Context(), nil); err != nil || report.String() != "" {
		t.Errorf("sweep = %v, %v", report, err)
	}
	expectEmpty(t)
}

// TestChildHoldsTheLock: a child that is being started shares the open ledger of its killed run, and so its lock.
func TestChildHoldsTheLock(t *testing.T) {
	if !child.Ending(exitedProcess(t)) {
		t.Skip("NOT RUN: needs /proc to know that a process has exited")
	}
	t.Setenv("TMPDIR", t.TempDir())
	writeLedger(t, fmt.Sprintf("killed-%d.0%s", exitedProcess(t), suffix), fmt.Sprintf("{\"boot\":%q}\n", bootID()))
	paths, err := ledgers()
	if err != nil || len(paths) != 1 {
		t.Fatal(paths, err)
	}
	release := holdInChild(t, paths[0])
	type result struct {
		Report
		error
	}
	swept := make(chan result, 1)
	go func() {
		report, err := Sweep(t.Context(), nil)
		swept <- result{report, err}
	}()
	select {
	case r := <-swept:
		t.Errorf("sweep did not wait for the child: %+v", r)
		release()
		return
	case <-time.After(50 * time.Millisecond):
	}
	release()
	if r := <-swept; r.error != nil || len(r.Swept) != 1 || len(r.Running) > 0 {
		t.Errorf("sweep = %+v", r)
	}
	expectEmpty(t)
}

// holdInChild locks a file in a child alone, until release.
func holdInChild(t *testing.T, path string) (release func()) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if locked, err := lock(file); err != nil || !locked {
		t.Fatal(locked, err)
	}
	holder := exec.Command("cat")
	holder.ExtraFiles = []*os.File{file}
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(holder.Start(), file.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Wait() })
	return sync.OnceFunc(func() { _ = in.Close() })
}

// exitedProcess is the number of a process that has exited.
func exitedProcess(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}
