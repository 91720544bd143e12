package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestSweepUnmounts: mounts of a dead run are detached before their directory is
// removed; a recorded mount that does not exist is no error.
func TestSweepUnmounts(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	l, err := Open("mounts")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(os.TempDir(), "data")
	mount, never := filepath.Join(dir, "disk"), filepath.Join(dir, "never")
	if err := errors.Join(os.MkdirAll(mount, 0o755), os.Mkdir(never, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Dir(dir), l.Mount(mount), l.Mount(never)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", mount, "tmpfs", 0, ""); errors.Is(err, unix.EPERM) {
		t.Skip("NOT RUN: needs root, to mount something")
	} else if err != nil {
		t.Fatal(err)
	}
	if err := l.Mount("/usr"); err == nil {
		t.Error("a mount outside of the temporary directory was accepted")
	}
	if err := l.file.Close(); err != nil { // as when its run exits
		t.Fatal(err)
	}
	report, err := Sweep(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Report{Swept: []Swept{{Run: runOf(l.Path()), Unmounted: []string{mount}, Removed: []string{dir}}}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := report.String(); !strings.Contains(text, "killed 0 processes, removed 1 directory, unmounted 1 disk\n") {
		t.Error(text)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}
