package lossydisk

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// fsyncs writes text and fsyncs it. It returns when the disk delays the fsync; done gets its error.
func fsyncs(t *testing.T, d *Disk, path, text string) (done chan error) {
	t.Helper()
	before := d.Slowed()
	done = make(chan error, 1)
	go func() {
		done <- withFile(path, func(f *os.File) error {
			if _, err := f.WriteString(text); err != nil {
				return err
			}
			return f.Sync()
		})
	}()
	awaitSlowed(t, d, before+1)
	return done
}

// awaitSlowed polls until the disk has delayed so many fsyncs.
func awaitSlowed(t *testing.T, d *Disk, n int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); d.Slowed() < n; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%d fsyncs were delayed, want %d", d.Slowed(), n)
		}
	}
}

// TestSlowFsync: an fsync takes as long as it was set to, or until the disk is fast again; what it covers is durable
// only then.
func TestSlowFsync(t *testing.T) {
	d, dir := mounted(t)
	path := filepath.Join(dir, "log")
	write(t, path, "", true)
	d.Slow(100 * time.Millisecond)
	began := time.Now()
	if err := <-fsyncs(t, d, path, "kept"); err != nil || time.Since(began) < 100*time.Millisecond {
		t.Errorf("an fsync took %v: %v", time.Since(began), err)
	}
	cut(t, d, 0)
	d.Slow(time.Hour)
	done := fsyncs(t, d, path, "longer")
	cut(t, d, 6) // "kept" was overwritten, and "er" appended
	d.Slow(0)
	if err := <-done; err != nil {
		t.Error(err)
	}
	cut(t, d, 0)
	write(t, path, "", true)
	if n := d.Slowed(); n != 2 {
		t.Errorf("%d fsyncs were delayed, want 2", n)
	}
}

// TestSlowFsyncOfAKilledProgram: a program can be stopped and continued while it waits for an fsync, and when the disk
// is abandoned, it exits as soon as it is killed, and nothing is durable.
func TestSlowFsyncOfAKilledProgram(t *testing.T) {
	d, dir := mounted(t)
	path := filepath.Join(dir, "log")
	write(t, path, "", true)
	d.Slow(time.Hour)
	script := "echo ready; exec dd if=/dev/zero of=" + path + " bs=9 count=1 conv=fsync"
	program := exec.CommandContext(t.Context(), "sh", "-c", script)
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	awaitSlowed(t, d, 1)
	for _, sig := range []os.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := program.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	d.Abandon()
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait() // it was killed
	cut(t, d, 9)
}
