//go:build unix

package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/child"
)

// TestDataDirWithoutLedger: a sweep removes the data directory of a dead program although nothing names it, with the
// process that runs in it, and leaves directories alone that have a live owner or none.
func TestDataDirWithoutLedger(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	live, err := (*Ledger)(nil).NewDataDir()
	if err != nil {
		t.Fatal(err)
	}
	dead, err := (*Ledger)(nil).NewDataDir()
	if err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(dead.Path, "n1", "disk")
	if err := os.MkdirAll(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	server, err := child.Start(child.Spec{Path: "sleep", Args: []string{"600"}, Dir: disk})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Kill() })
	unowned, err := os.MkdirTemp("", dataPrefix)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := Sweep(t.Context(), nil); err != nil || len(report.Orphans) > 0 {
		t.Fatalf("a sweep has removed what is in use: %v, %v", report.Orphans, err)
	}
	if err := dead.lock.Close(); err != nil { // as the end of the program does
		t.Fatal(err)
	}
	report, err := Sweep(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(report.Orphans, "directory "+dead.Path) || len(report.Orphans) != 2 ||
		!strings.HasPrefix(report.Orphans[0], "process ") || !strings.Contains(report.String(), dead.Path) {
		t.Errorf("removed %v", report.Orphans)
	}
	if err := server.Wait(); err == nil {
		t.Error("the process in the directory has not been killed")
	}
	for path, want := range map[string]bool{live.Path: true, unowned: true, dead.Path: false} {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) == want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := errors.Join(live.Remove(), live.Remove()); err != nil {
		t.Error(err)
	}
}
