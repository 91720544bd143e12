package wallclock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// A compiler that is interrupted cannot remove its temporary files: they are in the run's data directory, which is
// removed with the servers.
func TestCompilerLeavesNothingElsewhere(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	cc := filepath.Join(t.TempDir(), "cc")
	script := "#!/bin/sh\necho half > \"$TMPDIR/object.s\"\nexit 1\n"
	if err := os.WriteFile(cc, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := Compile(context.Background(), cc, dir); !errors.Is(err, cluster.ErrEnvironment) {
		t.Errorf("a compiler that fails: %v, want %v", err, cluster.ErrEnvironment)
	}
	if _, err := os.Stat(filepath.Join(dir, "object.s")); err != nil {
		t.Errorf("its temporary file: %v, want it in the data directory", err)
	}
}
