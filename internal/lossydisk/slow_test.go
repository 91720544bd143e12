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

// TestSlowFsync: an fsync takes as long as it was set to, or until the disk is fast again; its data are durable only
// then.
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
// is abandoned, before or after the fsync has begun, it exits as soon as it is killed, and nothing is durable.
func TestSlowFsyncOfAKilledProgram(t *testing.T) {
	for name, before := range map[string]bool{"abandoned before the fsync": true, "abandoned during it": false} {
		t.Run(name, func(t *testing.T) {
			d, dir := mounted(t)
			path := filepath.Join(dir, "log")
			write(t, path, "", true)
			d.Slow(time.Hour)
			end := func() {}
			if before {
				end = d.Abandon()
			}
			program := fsyncing(t, path)
			awaitSlowed(t, d, 1)
			if !before {
				for _, sig := range []os.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
					if err := program.Process.Signal(sig); err != nil {
						t.Fatal(err)
					}
				}
				end = d.Abandon()
			}
			if err := program.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			hangs := time.AfterFunc(30*time.Second, func() {
				t.Error("it was killed, and has not exited")
				d.Slow(0)
			})
			_ = program.Wait() // it was killed
			hangs.Stop()
			end()
			cut(t, d, 9)
		})
	}
}

// TestSlowFsyncOfTheNextProgram: the disk delays the fsyncs of a program that is started after one was killed.
func TestSlowFsyncOfTheNextProgram(t *testing.T) {
	d, dir := mounted(t)
	path := filepath.Join(dir, "log")
	write(t, path, "", true)
	d.Abandon()()
	d.Slow(time.Hour)
	done := fsyncs(t, d, path, "kept")
	d.Abandon()()
	select {
	case err := <-done:
		t.Errorf("an fsync that no signal has interrupted ended: %v", err)
	default:
	}
	d.Slow(0)
	if err := <-done; err != nil {
		t.Error(err)
	}
	cut(t, d, 0)
}

// fsyncing is a program that writes 9 bytes to a file and fsyncs it.
func fsyncing(t *testing.T, path string) *exec.Cmd {
	t.Helper()
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
	return program
}
