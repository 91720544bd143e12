package lossydisk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mounted mounts a disk, or skips the test.
func mounted(t *testing.T) (d *Disk, dir string) {
	t.Helper()
	if why := Missing(); why != "" {
		t.Skip("NOT RUN: ", why)
	}
	dir, backing := t.TempDir(), t.TempDir()
	d, err := Mount(dir, backing)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error("second Close: ", err)
		}
		if mounts, _ := os.ReadFile("/proc/mounts"); strings.Contains(string(mounts), dir) {
			t.Error("it is still mounted")
		}
	})
	return d, dir
}

// write appends text to a file, and fsyncs it if sync.
func write(t *testing.T, path, text string, sync bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if sync {
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
}

func want(t *testing.T, path, text string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("%s has %q, %v, want %q", filepath.Base(path), got, err, text)
	}
}

func cut(t *testing.T, d *Disk, want int64) {
	t.Helper()
	if lost, err := d.Cut(); err != nil || lost != want {
		t.Errorf("lost %d bytes, %v, want %d", lost, err, want)
	}
}

func TestCutDropsUnsyncedWrites(t *testing.T) {
	d, dir := mounted(t)
	log, never := filepath.Join(dir, "sub", "log"), filepath.Join(dir, "never")
	if err := os.Mkdir(filepath.Dir(log), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, log, "kept ", true)
	write(t, log, "lost", false)
	write(t, never, "lost", false)
	want(t, log, "kept lost") // before the power cut
	cut(t, d, 8)
	want(t, log, "kept ")
	want(t, never, "")
	cut(t, d, 0)
	write(t, log, "more", true)
	cut(t, d, 0)
	want(t, log, "kept more")
}

// TestRenameKeepsTheSync: a file that is renamed after its fsync, as Redis does with
// its manifest, is kept.
func TestRenameKeepsTheSync(t *testing.T) {
	d, dir := mounted(t)
	from, to := filepath.Join(dir, "temp"), filepath.Join(dir, "manifest")
	write(t, from, "file 1", true)
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	cut(t, d, 0)
	want(t, to, "file 1")
}

// TestTruncateDropsTheSync: writes after a truncation, or to another file with the same inode number, are not covered
// by an earlier fsync.
func TestTruncateDropsTheSync(t *testing.T) {
	d, dir := mounted(t)
	log := filepath.Join(dir, "log")
	write(t, log, "12345678", true)
	if err := os.Truncate(log, 3); err != nil {
		t.Fatal(err)
	}
	write(t, log, "abcde", false)
	cut(t, d, 5)
	want(t, log, "123")
	if err := os.WriteFile(log, []byte("new"), 0o644); err != nil { // truncates
		t.Fatal(err)
	}
	cut(t, d, 3)
	want(t, log, "")
	write(t, log, "x", true)
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	write(t, log, "y", false)
	cut(t, d, 1)
	want(t, log, "")
}

func TestMountWithoutDirectory(t *testing.T) {
	if why := Missing(); why != "" {
		t.Skip("NOT RUN: ", why)
	}
	if d, err := Mount(filepath.Join(t.TempDir(), "none"), t.TempDir()); err == nil {
		t.Error("mounted at a missing directory: ", d.Close())
	}
}

// TestProgramsDoNotInheritTheDevice: see mountCloseOnExec.
func TestProgramsDoNotInheritTheDevice(t *testing.T) {
	mounted(t)
	output, err := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput()
	if err != nil || strings.Contains(string(output), "/dev/fuse") {
		t.Errorf("%v, a new program has:\n%s", err, output)
	}
}

// TestSyncKeepsWhatWasWritten: data written before Sync survive a cut, and data written after it do not.
func TestSyncKeepsWhatWasWritten(t *testing.T) {
	d, dir := mounted(t)
	path := filepath.Join(dir, "file")
	write(t, path, "kept ", false)
	if err := d.Sync(); err != nil {
		t.Fatal(err)
	}
	write(t, path, "lost", false)
	cut(t, d, 4)
	want(t, path, "kept ")
}
